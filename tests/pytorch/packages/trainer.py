"""The Trainer of Hugging Face's transformers, as its documentation uses it: BERT with random weights on random tokens.

Arguments: `cpu` or `cuda`, then any of `bf16`, `fp16`, `checkpoint`. Nothing is downloaded.
"""

import os
import sys

os.environ["HF_HUB_OFFLINE"] = "1"
device, *features = sys.argv[1:]
if device == "cpu":
    os.environ["CUDA_VISIBLE_DEVICES"] = ""

import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments, set_seed

set_seed(1)
# On the CPU, where it computes, the model is small.
size, length = (768, 256) if device == "cuda" else (64, 32)
config = BertConfig(
    hidden_size=size, num_hidden_layers=4, num_attention_heads=4, intermediate_size=4 * size, vocab_size=8000, num_labels=4
)


class Sentences(torch.utils.data.Dataset):
    def __len__(self):
        return 96

    def __getitem__(self, index):
        made = torch.Generator().manual_seed(index)
        tokens = torch.randint(0, config.vocab_size, (length,), generator=made)
        return {"input_ids": tokens, "attention_mask": torch.ones(length, dtype=torch.long), "labels": index % 4}


arguments = TrainingArguments(
    output_dir=os.environ.get("OUTPUT", "trainer-output"),
    per_device_train_batch_size=8,
    per_device_eval_batch_size=8,
    gradient_accumulation_steps=2,
    num_train_epochs=2,
    max_grad_norm=1.0,
    warmup_steps=2,
    lr_scheduler_type="cosine",
    eval_strategy="steps",
    eval_steps=4,
    save_strategy="steps",
    save_steps=8,
    logging_steps=2,
    bf16="bf16" in features,
    fp16="fp16" in features,
    gradient_checkpointing="checkpoint" in features,
    report_to=[],
    disable_tqdm=True,
    seed=1,
)
trainer = Trainer(
    model=BertForSequenceClassification(config),
    args=arguments,
    train_dataset=Sentences(),
    eval_dataset=Sentences(),
)
result = trainer.train()
print("steps", result.global_step, "loss", result.training_loss)
if device == "cuda":
    count = torch.cuda.memory_stats()
    kinds = [f"{kind}_bytes.all.{when}" for kind in ("allocated", "reserved") for when in ("current", "peak")]
    print("PyTorch counts", {kind: count[kind] for kind in kinds}, "segments", count["segment.all.current"])
weights = sum(parameter.detach().double().abs().sum().item() for parameter in trainer.model.parameters())
print("weights", weights, "bytes", sum(p.nbytes for p in trainer.model.parameters()))
