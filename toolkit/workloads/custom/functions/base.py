"""The base of tasks that are written as classes. No torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from toolkit.workload import Metric


class Task:
    """A task as a class, named as `task: digits.py:Digits`.

    Its methods `model`, `data` and `step` are those of a file with three functions. Define them in the
    class itself, because their parameters are read from its text. Each process makes one object, without
    arguments. A member that a class leaves out has the default below.

    metrics   whether less or more of what `step` returns is better
    collate   makes a batch of a list of samples; None: torch's default_collate
    lengths   the length of each sample of a split; None: each counts as one
    optimizer makes the optimizer of a model; None: from the section `optimizer`
    schedule  the factor of the learning rate, from step and number of steps; None: from `lr_scheduler`
    prepare   is called before `data`, by one process of each machine that shares no folder; None: nothing
    report    what a run adds to its report; None: nothing
    predict   the model's predictions for a batch; None: the task predicts nothing
    sample    makes a sample of a row, for `stk predict`; None: a row of numbers is one
    version   changes when the data change in a way that their number and a few samples do not show
    """

    metrics: ClassVar[Mapping[str, str] | Sequence[Metric]] = {}
    collate: Callable[..., Any] | None = None
    lengths: Callable[..., Any] | None = None
    optimizer: Callable[..., Any] | None = None
    schedule: Callable[..., float] | None = None
    prepare: Callable[..., Any] | None = None
    report: Callable[..., Any] | None = None
    predict: Callable[..., Any] | None = None
    sample: Callable[..., Any] | None = None
    version: Any = None
