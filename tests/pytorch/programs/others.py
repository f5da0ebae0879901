"""Training loops that nobody here wrote: `others.py trainer|timm|lightning cpu|cuda`; bytes of the model's parameters."""

import sys
import tempfile

from figures import say
import torch
from torch.utils.data import DataLoader, TensorDataset

case, device = sys.argv[1:]


def trainer():
    from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

    model = GPT2LMHeadModel(GPT2Config(n_layer=4, n_embd=256, n_head=4, vocab_size=1000, n_positions=128))
    data = [{"input_ids": row, "labels": row} for row in torch.randint(0, 1000, (32, 128))]
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            folder, max_steps=3, per_device_train_batch_size=8, report_to=[], save_strategy="no", use_cpu=device == "cpu"
        )
        Trainer(model=model, args=arguments, train_dataset=data).train()
    return model


def timm():
    import timm
    import timm.optim

    model = timm.create_model("resnet26", num_classes=10).to(device)
    optimizer = timm.optim.create_optimizer_v2(model, opt="adamw", lr=1e-3)
    for _ in range(2):
        images, labels = torch.randn(4, 3, 128, 128).to(device), torch.zeros(4, dtype=torch.long).to(device)
        torch.nn.functional.cross_entropy(model(images), labels).backward()
        optimizer.step()
        optimizer.zero_grad()
    return model


def lightning():
    import lightning

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.layers = torch.nn.Sequential(torch.nn.Linear(512, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 512))

        def training_step(self, batch, _):
            return self.layers(batch[0]).square().mean()

        def configure_optimizers(self):
            return torch.optim.Adam(self.parameters())

    module = Module()
    data = DataLoader(TensorDataset(torch.randn(64, 512)), batch_size=8)
    accelerator = "gpu" if device == "cuda" else "cpu"
    with tempfile.TemporaryDirectory() as folder:
        loop = lightning.Trainer(
            max_epochs=1, logger=False, enable_checkpointing=False, accelerator=accelerator, devices=1, default_root_dir=folder
        )
        loop.fit(module, data)
    return module


try:
    model = {"trainer": trainer, "timm": timm, "lightning": lightning}[case]()
except ModuleNotFoundError as missing:
    say(missing=missing.name)
else:
    say(parameters=sum(parameter.numel() * parameter.element_size() for parameter in model.parameters()))
