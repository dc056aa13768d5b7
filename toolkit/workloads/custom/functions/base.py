"""The base class of tasks that are written as classes. Does not import torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from toolkit.workload import Metric


class Task:
    """A task as a class, named as `task: digits.py:Digits`.

    Its methods `model`, `data` and `step` are those of a file with three functions. Define them in the
    class itself, because their parameters are read from its source. Each process makes one object, without
    arguments. Optional members have the defaults below.

    metrics   whether a lower or a higher value of each metric of `step` is better
    collate   makes a batch of a list of samples; None: torch's default_collate
    lengths   the length of each sample of a split; None: each counts as one
    optimizer makes the optimizer of a model; None: from the section `optimizer`
    schedule  the factor of the learning rate, from step and number of steps; None: from `lr_scheduler`
    prepare   is called before `data`, by one process (one per machine without a shared folder); None: nothing
    report    makes additional sections of a run's report; None: no sections
    predict   the model's predictions for a batch; None: the task predicts nothing
    sample    makes a sample from a row, for `stk predict`; None: a row of numbers is a sample
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
