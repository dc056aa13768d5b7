"""A task with its own experiment class: its keys, and the placeholders of absent sections."""

from __future__ import annotations

import copy
import pickle
from dataclasses import dataclass
from typing import Any

import pytest

from toolkit import registry
from toolkit.config import check, to_plain
from toolkit.config.fields import absent, option
from toolkit.config.identity import identity
from toolkit.config.schema import Experiment, Train
from toolkit.errors import ConfigError, UserError
from toolkit.workload import NoData, NoModel, TaskSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """A task that only waits."""

    kind: str = option("wait", choices=("wait",))
    """Waits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitExperiment(Experiment):
    """An experiment without training."""

    model: Any = absent(NoModel())  # noqa: RUF009
    data: Any = absent(NoData())  # noqa: RUF009
    train: Train = absent(Train(logical_ranks=64))  # noqa: RUF009
    seconds: int = option(1, minimum=0)
    """How long."""


@pytest.fixture(autouse=True)
def waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = {"wait": TaskSpec(kind="wait", config=Wait, experiment=WaitExperiment)}
    monkeypatch.setattr(registry, "_KINDS", kinds)


def waits(**keys: Any) -> Experiment:
    return check({"name": "w", "task": {"kind": "wait"}, **keys})


def test_own_keys_are_read_and_absent_sections_are_left_out() -> None:
    experiment = waits(seconds=3)
    plain = to_plain(experiment)
    assert plain["seconds"] == 3
    assert not {"model", "data", "train"} & set(plain)
    assert check(plain) == experiment


@pytest.mark.parametrize("name", ["train", "model", "data"])
def test_an_absent_section_in_the_file_is_a_fault(name: str) -> None:
    with pytest.raises(ConfigError, match=f"{name}: there is no such key"):
        waits(**{name: {}})


def test_a_misspelt_kind_is_the_only_fault_beside_keys_that_no_task_has() -> None:
    with pytest.raises(ConfigError) as caught:
        check({"name": "w", "task": {"kind": "wayt"}, "seconds": 3, "minutes": 1})
    assert [fault.key for fault in caught.value.faults] == ["minutes", "task.kind"]


def test_an_absent_section_has_a_placeholder_without_effect() -> None:
    experiment = waits()
    assert experiment.train.logical_ranks == 64
    assert list(experiment.data.violations()) == []
    assert list(experiment.data.source_files(lambda *_: None)) == []
    assert not experiment.model.needs_preparation


def test_the_identity_depends_on_the_own_keys() -> None:
    assert identity(waits(seconds=1)) != identity(waits(seconds=2))
    assert identity(waits(seconds=1)) == identity(waits())


def test_an_own_experiment_with_registered_sections_can_be_copied_and_pickled() -> None:
    experiment = waits(seconds=5)
    assert pickle.loads(pickle.dumps(experiment)) == copy.deepcopy(experiment) == experiment


def test_an_own_experiment_has_no_task_class() -> None:
    from toolkit.task import task_class

    with pytest.raises(UserError, match=r"task\.kind wait"):
        task_class(waits())
