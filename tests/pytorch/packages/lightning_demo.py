"""Lightning's own Transformer demo (lightning.pytorch.demos.transformer) under its Trainer, on a text of random words.

Arguments: `cpu` or `cuda`, then any of `bf16-mixed`, `16-mixed`. Nothing is downloaded.
"""

import os
import pathlib
import random
import sys

device, *features = sys.argv[1:]
if device == "cpu":
    os.environ["CUDA_VISIBLE_DEVICES"] = ""

import lightning
import torch
from lightning.pytorch.demos.transformer import LightningTransformer, WikiText2
from torch.utils.data import DataLoader, random_split

output = pathlib.Path(os.environ.get("OUTPUT", "lightning-output"))
text = output / "data" / "wikitext-2.txt"
text.parent.mkdir(parents=True, exist_ok=True)
words = random.Random(1)
text.write_text("\n".join(" ".join(f"w{words.randrange(2000)}" for _ in range(35)) for _ in range(400)) + "\n")


class Demo(LightningTransformer):
    """The demo with a validation loop; its data do not come from the network."""

    def prepare_data(self):
        pass

    def validation_step(self, batch, batch_idx):
        inputs, target = batch
        self.log("validation", torch.nn.functional.nll_loss(self(inputs, target), target.view(-1)))


lightning.seed_everything(1)
text = WikiText2(output / "data", download=False)
# On the CPU, where it computes, the text is short.
length = 160 if device == "cuda" else 32
training, validation, _ = random_split(text, [length, length // 4, len(text) - length - length // 4])
model = Demo(vocab_size=text.vocab_size)
trainer = lightning.Trainer(
    accelerator="gpu" if device == "cuda" else "cpu",
    devices=1,
    max_epochs=2,
    accumulate_grad_batches=2,
    gradient_clip_val=1.0,
    precision=next((one for one in features if "mixed" in one), "32-true"),
    default_root_dir=output,
    logger=False,
    enable_progress_bar=False,
    val_check_interval=length // 16,
)
trainer.fit(model, DataLoader(training, batch_size=8), DataLoader(validation, batch_size=8))
print("steps", trainer.global_step)
if device == "cuda":
    count = torch.cuda.memory_stats()
    kinds = [f"{kind}_bytes.all.{when}" for kind in ("allocated", "reserved") for when in ("current", "peak")]
    print("PyTorch counts", {kind: count[kind] for kind in kinds}, "segments", count["segment.all.current"])
print("weights", sum(parameter.detach().double().abs().sum().item() for parameter in model.parameters()))
