"""BERT-base trained in bf16 on one device: tokens a second, the share of the peak, a checkpoint's copy."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import torch
from transformers import BertConfig, BertForSequenceClassification, BertModel

from benchmarks.measuring.rounds import Case
from benchmarks.stepping.start import ours, peer
from benchmarks.stepping.work import Work, make, write_tokenizer
from toolkit.checkpoint.state import Progress, TrainState
from toolkit.checkpoint.writing.staging import Staging

TRAINER = "HF Trainer"

#: Floating-point operations a second in bf16, without sparsity, by a part of the device's name.
_PEAKS = {
    "H100 PCIe": 756e12,
    "H100 NVL": 835e12,
    "H100": 989e12,
    "H200": 989e12,
    "A100": 312e12,
    "L40S": 362e12,
    "L40": 181e12,
    "4090": 165e12,
    "A10": 125e12,
}
_BASE = {
    "vocab_size": 30522,
    "hidden_size": 768,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "intermediate_size": 3072,
}
#: Keys of `train`, by candidate.
_OURS = {
    "stk run": {},
    "stk run, deterministic: false": {"deterministic": False, "compile": "off"},
    "stk run, compiled": {"deterministic": False, "compile": "on"},
}


def work_of(folder: Path, on: str, *, quick: bool) -> Work:
    """Return the training: batches of 256 texts of 128 tokens, smaller if quick."""
    batch, length, steps = (4, 16, 30) if quick else (256, 128, 100)
    return Work(
        folder=str(folder),
        model="bert",
        processes=1,
        device=on,
        steps=steps,
        window=10,
        batch=batch,
        length=length,
    )


def prepare(work: dict[str, Any], quick: bool) -> dict[str, float]:
    """Write the model with random weights, its tokenizer and the texts; return facts for the figures.

    weights  number of weights without embeddings, which are looked up and not multiplied
    peak     operations a second of the device, NaN if unknown
    """
    job = Work(**work)
    folder = f"{job.folder}/bert"
    write_tokenizer(folder)
    if not quick:
        path = Path(folder) / "config.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), **_BASE}))
    torch.manual_seed(0)
    model = BertModel(BertConfig.from_pretrained(folder))
    model.save_pretrained(folder)
    make(job)
    return {
        "weights": sum(each.numel() for name, each in model.named_parameters() if "embeddings" not in name),
        "peak": next((peak for name, peak in _PEAKS.items() if name in _name(job.device)), float("nan")),
    }


def cases(work: Work, facts: dict[str, float]) -> Iterator[Case]:
    """Yield the candidates: `stk run` with several settings, and Trainer."""
    title = f"{work.batch} texts of {work.length} tokens"
    for candidate, train in _OURS.items():
        if work.device == "cpu" and train:
            continue
        whole = {"device": work.device, "precision": "bf16", **train}
        measure = partial(_rates, partial(ours, work, whole), work, facts)
        yield Case(work=title, candidate=candidate, measure=measure)
    trainer = partial(_rates, partial(peer, "with_trainer", work), work, facts)
    yield Case(work=title, candidate=TRAINER, measure=trainer, needs=("accelerate",))


def _rates(measure: Callable[[], dict[str, float]], work: Work, facts: dict[str, float]) -> dict[str, float]:
    rate = 1000 * work.batch * work.length / measure()["step_ms"]
    # Six operations for each weight and token: two forward, four backward; without those of attention.
    return {"tokens": rate, "share": 100 * 6 * facts["weights"] * rate / facts["peak"]}


def checkpoint_copy(on: str, quick: bool) -> dict[str, float]:
    """Return the seconds that training waits for a checkpoint: the second copy, into allocated memory."""
    config = BertConfig(num_hidden_layers=1, hidden_size=24) if quick else BertConfig()
    model = BertForSequenceClassification(config).train()
    model.to(torch.device(on))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
    state = TrainState(Progress(), model, optimizer, torch.amp.GradScaler(on, enabled=False))
    ids = torch.randint(1, 1000, (1, 8), device=on)
    model(input_ids=ids, labels=torch.zeros(1, dtype=torch.int64, device=on)).loss.backward()
    optimizer.step()
    staging = Staging()
    staging.fill(state)
    if on == "cuda":
        torch.cuda.synchronize()
    began = time.perf_counter()
    staging.fill(state)
    return {"value": time.perf_counter() - began}


def _name(on: str) -> str:
    return torch.cuda.get_device_name() if on == "cuda" else on
