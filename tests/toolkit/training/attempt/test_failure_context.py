"""The context of a failure: all available facts, and never another exception."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from stk_toy.texts.task import TextsTask

from tests.toolkit.support.tiny import tiny
from toolkit.config.schema import Evaluation
from toolkit.files import read_json
from toolkit.reliability.stop import StopFlag
from toolkit.run.create_run import create_run
from toolkit.system.world import World
from toolkit.training import worker
from toolkit.training.attempt.failure_context import describe_gpu, failure_context, memory_advice
from toolkit.training.context import Activity


def at_work(*samples: int) -> SimpleNamespace:
    """A context of training with samples of lengths 10, 11, 12, …"""
    split = SimpleNamespace(lengths=np.arange(10, 110))
    return SimpleNamespace(
        activity=Activity(batch=np.array(samples)),
        micro_batches=8,
        task=SimpleNamespace(splits={"train": split}),
    )


def test_failure_context_has_batch_and_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    # The kernel's peak may be behind the present use.
    monkeypatch.setattr("resource.getrusage", lambda who: SimpleNamespace(ru_maxrss=1024))
    found = failure_context(at_work(0, 5, 90), torch.device("cpu"), {})
    assert found["batch"] == {"samples": 3, "tokens": 10 + 15 + 100, "longest": 100, "micro_batches": 8}
    memory = found["memory"]
    assert 1.0 < memory["rss_mb"] <= memory["rss_peak_mb"] <= memory["host_mb"]
    assert "gpu" not in found


def test_unavailable_facts_are_left_out() -> None:
    """A device that has failed; a task that is not there yet."""
    broken = at_work(0)
    broken.task = None
    assert set(failure_context(broken, torch.device("cuda:7"), {"index": 7})) == {"gpu", "memory"}
    assert set(failure_context(None, None, {})) == {"memory"}


@pytest.mark.skipif(torch.cuda.is_available(), reason="of a GPU that does not answer")
def test_an_unresponsive_gpu_is_described_by_its_index_on_the_host() -> None:
    assert describe_gpu(torch.device("cuda:1"), {"CUDA_VISIBLE_DEVICES": "4,6"}) == {"index": 6}
    assert describe_gpu(torch.device("cuda:1"), {"CUDA_VISIBLE_DEVICES": "GPU-a,GPU-b"}) == {"index": 1}


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_gpu_is_described_with_name_uuid_and_memory() -> None:
    gpu = describe_gpu(torch.device("cuda:0"))
    assert gpu["name"]
    assert gpu["uuid"].startswith("GPU-")
    memory = failure_context(None, torch.device("cuda:0"), gpu)["memory"]["gpu"]
    assert 0 < memory["free_mb"] < memory["total_mb"]


def test_memory_advice_names_the_key_to_change() -> None:
    gpu = {"others_mb": 40960.0, "total_mb": 81920.0}
    told = memory_advice({"batch": {"samples": 64}, "memory": {"gpu": gpu}}, accumulation=2)
    assert "The micro-batch of 64 samples did not fit: train.accumulation=4" in told
    assert "as does train.precision=bf16" in told
    assert "Other processes use 40.0 GB of this GPU" in told
    assert "bf16" not in memory_advice({"memory": {"gpu": gpu}}, accumulation=2, halved=True)
    told = memory_advice({"memory": {"gpu": gpu}}, accumulation=2, evaluation=Evaluation())
    assert told.startswith("evaluation.batch_size=128")
    told = memory_advice({"memory": {"limit_mb": 2048.0}}, accumulation=1)
    assert "ask for more memory (resources.mem), which is 2.0 GB now" in told


@pytest.mark.usefixtures("threads_restored")
def test_a_run_out_of_memory_records_batch_memory_and_advice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The text classifier asks for more than there is, in its second step."""
    calls = iter(range(1000))
    loss = TextsTask.loss

    def greedy(*arguments: object) -> object:
        return loss(*arguments) if next(calls) < 9 else torch.empty(1 << 60)

    monkeypatch.setattr(TextsTask, "loss", greedy)
    run = create_run(tiny(tmp_path), tmp_path)
    with pytest.raises(RuntimeError, match="memory"):
        worker.run_attempt(run, World.single(), StopFlag())
    failure = read_json(run.failure)
    assert (failure["class"], failure["phase"], failure["step"]) == ("out_of_memory", "forward", 1)
    assert failure["batch"]["samples"] == len(failure["samples"]) == 1
    assert failure["batch"]["longest"] == failure["batch"]["tokens"] > 0
    assert failure["memory"]["rss_mb"] > 0
    assert "gpu" not in failure
    assert "train.accumulation=2" in failure["advice"]
