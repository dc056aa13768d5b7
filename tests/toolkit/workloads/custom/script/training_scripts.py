"""Training scripts that ask for their run: plain torch, transformers' Trainer, Lightning's.

They import `moments.py` (interrupted.py), which interrupts them, and print a digest of their weights.
"""

from __future__ import annotations

import os

from .interrupted import TOTAL

#: Trains in one process or several, and saves every fifth step.
PLAIN = f"""
import os, sys
import stk
run = stk.current_run()
assert "torch" not in sys.modules
import torch
import torch.distributed as dist
from torch import nn
from moments import rank, reached, size, tell

latest = run.latest_checkpoint()
if size > 1:
    dist.init_process_group("gloo")
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
step = 0
if latest:
    state = torch.load(latest / "state.pt")
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    step = state["step"]
    assert (latest / f"rank_{{rank}}.txt").read_text() == str(step)
while step < {TOTAL}:
    step += 1
    x = torch.randn(8, 4, generator=torch.Generator().manual_seed(1000 * step + rank))
    loss = (model(x) - x.sum(1, keepdim=True)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    if size > 1:
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad)
            parameter.grad /= size
    optimizer.step()
    run.log(step=step, total={TOTAL}, loss=loss)
    reached(step)
    is_asked = run.should_stop()
    if is_asked or step % 5 == 0:
        with run.checkpoint(step) as folder:
            (folder / f"rank_{{rank}}.txt").write_text(str(step))
            if rank == 0:
                state = {{"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step}}
                torch.save(state, folder / "state.pt")
    if is_asked:
        run.leave()
run.log(step=step, split="validation", accuracy=0.5)
tell(model)
"""

#: A small BERT on random labels, with dropout and shuffled samples. RunCallback is the only line for `stk`.
TRANSFORMERS = f"""
import torch
from transformers import BertConfig, BertForSequenceClassification
from transformers import Trainer, TrainerCallback, TrainingArguments
import stk
from moments import reached, tell


class Moments(TrainerCallback):
    def on_step_end(self, args, state, control, **kwargs):
        reached(state.global_step)


torch.manual_seed(0)
config = BertConfig(
    vocab_size=50, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32,
    max_position_embeddings=16, num_labels=2,
)
model = BertForSequenceClassification(config)
generator = torch.Generator().manual_seed(1)
texts = torch.randint(5, 50, (32, 8), generator=generator)
samples = [{{"input_ids": text, "labels": index % 2}} for index, text in enumerate(texts)]
arguments = TrainingArguments(
    output_dir="out", max_steps={TOTAL}, per_device_train_batch_size=4, save_steps=5, logging_steps=1,
    eval_strategy="steps", eval_steps=6, learning_rate=0.01, use_cpu=True, report_to=[], disable_tqdm=True,
)
trainer = Trainer(
    model=model, args=arguments, train_dataset=samples, eval_dataset=samples[:8],
    callbacks=[Moments(), stk.transformers.RunCallback()],
)
trainer.train()
tell(trainer.model)
"""

#: The same with two layers of the pretrained encoder in a folder that STK_MINILM names.
PRETRAINED = TRANSFORMERS.replace(
    "BertForSequenceClassification(config)",
    "BertForSequenceClassification.from_pretrained("
    f"{os.environ.get('STK_MINILM')!r}, num_hidden_layers=2, num_labels=2)",
)

#: Epochs of four steps, with dropout and shuffled samples. RunCallback is the only line for `stk`.
LIGHTNING = f"""
import os
import lightning as L
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
import stk
from moments import reached, size, tell


class Moments(L.Callback):
    def on_train_batch_end(self, trainer, module, outputs, batch, index):
        reached(trainer.global_step)


class Model(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.3), nn.Tanh(), nn.Linear(8, 1))

    def training_step(self, batch, index):
        loss = nn.functional.mse_loss(self.layers(batch[0]), batch[1])
        self.log("train_size", float(len(batch[0])))
        return loss

    def validation_step(self, batch, index):
        self.log("val_loss", nn.functional.mse_loss(self.layers(batch[0]), batch[1]), sync_dist=size > 1)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=0.01)


L.seed_everything(0)
x = torch.randn(16 * size, 4)
samples = TensorDataset(x, x.sum(1, keepdim=True))
devices = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
trainer = L.Trainer(
    max_epochs={TOTAL} // 4, accelerator="cpu", devices=devices, num_nodes=size // devices,
    log_every_n_steps=1, logger=False, enable_checkpointing=False,
    enable_progress_bar=False, enable_model_summary=False,
    callbacks=[Moments(), stk.lightning.RunCallback()],
)
loader = DataLoader(samples, batch_size=4, shuffle=True)
trainer.fit(Model(), loader, DataLoader(samples, batch_size=8))
tell(trainer.lightning_module)
"""
