"""Checks on a GPU, once each; most raise AssertionError if the claim does not hold."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
from torch import nn

from tests.toolkit.workloads.text_classification.tiny_texts import write_docnn
from toolkit.distributed.process_group import Group
from toolkit.distributed.reduction import FastReduction
from toolkit.run.failure.classes import OUT_OF_MEMORY, class_of
from toolkit.system.world import World

_HOLDS = {"value": 1.0}


def nccl_hook() -> dict[str, float]:
    """Sum with DDP's hook over NCCL, in a group of one that claims size 2: gradients must stay the same."""
    with tempfile.TemporaryDirectory() as name:
        dist.init_process_group(
            "cpu:gloo,cuda:nccl", init_method=f"file://{name}/store", rank=0, world_size=1
        )
        group = Group(World(rank=0, size=2, local_rank=0, local_size=2), torch.device("cuda", 0))
        model = nn.Sequential(nn.Linear(64, 64), nn.Linear(64, 1)).cuda()
        inputs = torch.ones(8, 64, device="cuda")
        model(inputs).sum().backward()
        expected = [parameter.grad.clone() for parameter in model.parameters() if parameter.grad is not None]
        with closing(FastReduction(model, group)) as reduction:
            rows = np.arange(6.0).reshape(2, 3)
            reduction.start(lambda: rows)
            with reduction.micro_batch(last=True):
                reduction.compute(lambda model: model(inputs)).sum().backward()
            assert np.array_equal(reduction.finish(), rows)
        for parameter, gradient in zip(model.parameters(), expected, strict=True):
            torch.testing.assert_close(parameter.grad, gradient)
        group.barrier()
        dist.destroy_process_group()
    return _HOLDS


def out_of_memory() -> dict[str, float]:
    """Allocate more memory than any GPU has, and check the class of the failure."""
    found = "nothing failed"
    try:
        torch.empty(1 << 44, dtype=torch.uint8, device="cuda")
    except Exception as error:
        found = class_of(error)
    assert found == OUT_OF_MEMORY, found
    return _HOLDS


def two_ranks() -> dict[str, float]:
    """Start two ranks that see one GPU; return the exit status of `stk run` as `value`."""
    with tempfile.TemporaryDirectory() as name:
        file = write_docnn(Path(name))
        command = [sys.executable, "-m", "slurm", "run", str(file), "train.device=cuda", "--procs", "2"]
        ended = subprocess.run(
            command, env=_seeing_one(name), capture_output=True, text=True, timeout=300, check=False
        )
    # A refusal is a message, not a traceback.
    assert "Traceback" not in ended.stderr, ended.stderr[-500:]
    return {"value": float(ended.returncode)}


def _seeing_one(folder: str) -> dict[str, str]:
    return {**os.environ, "CUDA_VISIBLE_DEVICES": "0", "STK_EXPERIMENT_DIR": folder}
