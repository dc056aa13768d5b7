"""What takes long to import is not imported by what can do without it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.support.registering import ROOT

ARGUMENTS = """
from toolkit.config.library_arguments import *
[arguments_of(each) for each in (*OPTIMIZERS.values(), *SCHEDULES.values())]
"""
OPTIMIZER_STEPS = """
import torch
from toolkit.config.library_arguments import OPTIMIZERS
from toolkit.config.schema import Optimizer
from toolkit.training.assembly.optimizers import build_optimizer
for kind in OPTIMIZERS:
    model = torch.nn.Linear(1, 1)
    optimizer = build_optimizer(model, Optimizer(kind=kind))
    model(torch.ones(1, 1)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
    optimizer.load_state_dict(optimizer.state_dict())
"""


@pytest.mark.parametrize(
    "code, slow",
    [
        ("import toolkit.analysis.diff", {"torch", "numpy", "rich"}),
        ("import toolkit.config.sections, toolkit.report.formats", {"yaml", "rich"}),
        ("import toolkit.data.prepared.results", {"numpy"}),
        (ARGUMENTS, {"torch", "transformers"}),
        (OPTIMIZER_STEPS, {"torch._dynamo"}),
    ],
    ids=["comparing runs", "sections and formats", "recording results", "arguments", "steps of optimizers"],
)
def test_what_takes_long_is_not_imported(code: str, slow: set[str]) -> None:
    program = f"{code}\nimport sys\nprint({slow!r} & sys.modules.keys())"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout == "set()\n"
