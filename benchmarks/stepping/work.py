"""The training of every tool: its files, model, samples and optimizer."""

from __future__ import annotations

import json
import random
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

WORDS, LR = 1000, 1e-3


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """One training.

    model       docnn or bert
    batch       samples of a step, over all processes
    length      tokens of every sample
    window      steps between two readings of the clock
    device      cpu or cuda
    network     the section `model` of the experiment; empty: a small model
    """

    folder: str
    model: str
    processes: int
    steps: int
    window: int
    batch: int = 8
    length: int = 16
    device: str = "cpu"
    network: dict[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def samples(self) -> int:
        return self.steps * self.batch

    @property
    def experiment_file(self) -> Path:
        return Path(self.folder) / f"{self.model}.json"

    @property
    def tensors_file(self) -> Path:
        return Path(self.folder) / "samples.npz"

    def experiment(self, **train: Any) -> dict[str, Any]:
        """Return the content of the experiment file."""
        bert = {"kind": "pretrained", "path": str(Path(self.folder) / "bert")}
        docnn = {"kind": "docnn", "embedding_dim": 32, "filters": 32}
        return {
            "name": f"loop-{self.model}",
            "task": {"kind": "text_classification"},
            "model": self.network or (bert if self.model == "bert" else docnn),
            "data": {
                "train": str(Path(self.folder) / "train.csv"),
                "validation": str(Path(self.folder) / "validation.csv"),
                "tokenizer": "pretrained",
                "tokenizer_path": str(Path(self.folder) / "bert"),
                "prepared_dir": str(Path(self.folder) / "prepared"),
            },
            "train": {
                "epochs": 1,
                "batch_size": self.batch,
                "logical_ranks": self.processes,
                "log_per_epoch": self.steps // self.window,
                "device": self.device,
                **train,
            },
            "optimizer": {"kind": "adamw", "lr": LR},
            "lr_scheduler": {"kind": "linear"},
        }


def make(work: Work) -> None:
    """Write the tables and the samples as arrays, with an existing tokenizer, in a separate process."""
    import numpy as np

    from toolkit.workloads.text_classification.data.prepared import prepare
    from toolkit.workloads.text_classification.data.samples import pad_batch

    folder = Path(work.folder)
    rng = random.Random(0)
    for name, rows in (("train", work.samples), ("validation", 16)):
        _write_table(folder / f"{name}.csv", rows, work.length - 2, rng)
    prepared = prepare(_experiment(work).data)
    split = prepared.split("train")
    tokens, _, labels = pad_batch(split, np.arange(len(split)))
    np.savez(work.tensors_file, tokens=tokens, labels=labels)


def _write_table(path: Path, rows: int, words: int, rng: random.Random) -> None:
    with open(path, "w", encoding="utf-8") as stream:
        stream.write("text,label\n")
        for row in range(rows):
            text = " ".join(word(rng.randrange(WORDS)) for _ in range(words))
            stream.write(f"{text},{('left', 'right')[row % 2]}\n")


def word(number: int) -> str:
    """Return a word of three letters for a number."""
    return "".join(chr(ord("a") + number // 26**place % 26) for place in (2, 1, 0))


def write_tokenizer(folder: str) -> None:
    """Write a tokenizer of whole words, and the configuration of a BERT of two small layers."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    special = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
    ids = {piece: number for number, piece in enumerate([*special, *map(word, range(WORDS))])}
    tokenizer = Tokenizer(models.WordLevel(ids, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    Path(folder).mkdir(parents=True, exist_ok=True)
    tokenizer.save(f"{folder}/tokenizer.json")
    config = {"vocab_size": len(ids), "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2}
    kind = {"model_type": "bert", "architectures": ["BertModel"], "intermediate_size": 128}
    (Path(folder) / "config.json").write_text(json.dumps({**kind, **config}))


def write_bert(folder: str) -> None:
    """Write a small BERT with random weights, and its tokenizer, in a separate process."""
    import torch
    from transformers import BertConfig, BertModel

    write_tokenizer(folder)
    torch.manual_seed(0)
    BertModel(BertConfig.from_pretrained(folder)).save_pretrained(folder)


def _experiment(work: Work) -> Any:
    from toolkit.config import load
    from toolkit.files import write_quickly

    # Every rank writes the file, so it is replaced atomically.
    write_quickly(work.experiment_file, json.dumps(work.experiment()))
    return load(work.experiment_file, [])


def build_model(work: Work) -> Any:
    """Build the network of the toolkit as the task does."""
    import torch

    from toolkit.task import build_model

    torch.manual_seed(0)
    return build_model(
        _experiment(work), vocabulary_size=5 + WORDS, labels=("left", "right"), pad_id=0, tokens=tuple
    )


def build_classifier(work: Work) -> Any:
    """Build the same network with its loss, in the form for Trainer and Lightning."""
    import torch
    from torch import nn

    class Classifier(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.network = build_model(work)

        def forward(self, tokens: torch.Tensor, labels: torch.Tensor) -> dict[str, torch.Tensor]:
            scores = self.network(tokens)
            return {"loss": nn.functional.cross_entropy(scores, labels), "logits": scores}

    return Classifier()


def samples(work: Work) -> Any:
    """Return the training samples as a dataset of {tokens, labels}, in memory."""
    import numpy as np
    import torch

    class Texts(torch.utils.data.Dataset[dict[str, torch.Tensor]]):
        def __init__(self) -> None:
            arrays = np.load(work.tensors_file)
            self.tokens, self.labels = (torch.from_numpy(arrays[name]) for name in ("tokens", "labels"))

        def __len__(self) -> int:
            return len(self.labels)

        def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
            return {"tokens": self.tokens[index], "labels": self.labels[index]}

    return Texts()


def build_optimizer(model: Any) -> Any:
    """Return the same optimizer as the toolkit: fused AdamW."""
    import torch

    return torch.optim.AdamW(model.parameters(), lr=LR, weight_decay=0.01, fused=True)


def decay(work: Work, optimizer: Any) -> Any:
    """Return a schedule that decays linearly to zero."""
    import torch

    return torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: max(0.0, 1 - step / work.steps))


class Clock:
    """The times at the ends of the windows, taken after the loss was read as for a log."""

    def __init__(self, work: Work) -> None:
        self._window = work.window
        self.times: list[float] = []

    def step(self, step: int, loss: Any) -> None:
        """Note that a step, counted from 1, is done."""
        if step % self._window == 0:
            float(loss)
            self.times.append(time.time())
