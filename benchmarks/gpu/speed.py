"""BERT-base by hand of the loop's own parts: tokens a second, the share of the peak, a checkpoint's copy."""

from __future__ import annotations

import time

import torch
from transformers import BertConfig, BertForSequenceClassification

from toolkit.checkpoint.state import Progress, TrainState
from toolkit.checkpoint.writing.staging import Staging

#: Floating-point operations a second in bf16, without sparsity, by a part of the device's name.
_PEAKS = {"H100": 989e12, "H200": 989e12, "A100": 312e12, "L40": 181e12, "4090": 165e12, "A10": 125e12}
_WARM_UP, _STEPS = 5, 20


def of_bert(on: str, figure: str, quick: bool) -> dict[str, float]:
    """One figure of a training of BERT-base, batches of 256 texts of 128 tokens, in bf16."""
    samples, tokens = (4, 16) if quick else (256, 128)
    state = _state(on, quick)
    if figure.startswith("a checkpoint"):
        return {"value": _copy_s(state, on)}
    seconds = _step_s(state, on, samples, tokens)
    rate = samples * tokens / seconds
    if figure == "tokens a second":
        return {"value": rate}
    # Six operations for each weight and token: two forward, four backward. Tables of tokens are looked up.
    weights = sum(p.numel() for name, p in state.model.named_parameters() if "embeddings" not in name)
    peak = next((peak for name, peak in _PEAKS.items() if name in _name(on)), None)
    return {"value": float("nan") if peak is None else 100 * 6 * weights * rate / peak}


def _name(on: str) -> str:
    return torch.cuda.get_device_name() if on == "cuda" else on


def _state(on: str, quick: bool) -> TrainState:
    config = BertConfig(num_hidden_layers=1, hidden_size=24) if quick else BertConfig()
    model = BertForSequenceClassification(config).to(on).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
    return TrainState(Progress(), model, optimizer, torch.amp.GradScaler(on, enabled=False))


def _step_s(state: TrainState, on: str, samples: int, tokens: int) -> float:
    """Seconds of a step, the device's work included."""
    ids = torch.randint(1, 1000, (samples, tokens), device=on)
    labels = torch.zeros(samples, dtype=torch.int64, device=on)
    for step in range(_WARM_UP + _STEPS):
        if step == _WARM_UP:
            _finish(on)
            began = time.perf_counter()
        state.optimizer.zero_grad(set_to_none=True)
        with torch.autocast(on, torch.bfloat16):
            loss = state.model(input_ids=ids, labels=labels).loss
        loss.backward()
        state.optimizer.step()
    _finish(on)
    return (time.perf_counter() - began) / _STEPS


def _copy_s(state: TrainState, on: str) -> float:
    """Seconds for which training waits for a checkpoint: the second copy, into memory that is there."""
    _step_s(state, on, 1, 8)
    staging = Staging()
    staging.fill(state)
    _finish(on)
    began = time.perf_counter()
    staging.fill(state)
    return time.perf_counter() - began


def _finish(on: str) -> None:
    if on == "cuda":
        torch.cuda.synchronize()
