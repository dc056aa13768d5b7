"""A rank that is silent counts as hanging, unless what it does may take that long."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import patch

import pytest
from torch import nn

from tests.toolkit.support.ranks import in_ranks
from tests.toolkit.support.tiny import tiny
from toolkit.config.schema import Train
from toolkit.reliability.stop import NeverStop
from toolkit.reliability.watchdog import period_s
from toolkit.run.create_run import create_run
from toolkit.run.phases import Phase
from toolkit.run.run_dir import RunDir
from toolkit.system.world import World
from toolkit.training import worker
from toolkit.training.attempt.time_limits import hang_limit_s, lock_patience_s
from toolkit.training.context import TrainContext


@pytest.mark.parametrize("phase", [Phase.DATA, Phase.BACKWARD, Phase.EVALUATION])
def test_hang_limit_is_below_the_collective_timeout(phase: Phase) -> None:
    assert hang_limit_s(Train(hang_timeout_s=300.0, collective_timeout_s=600.0), phase, 90.0) == 300.0
    assert hang_limit_s(Train(hang_timeout_s=300.0, collective_timeout_s=100.0), phase, 90.0) == 75.0


def test_hang_limit_of_a_save_is_ten_times_its_usual_duration() -> None:
    train = Train(hang_timeout_s=300.0)
    assert hang_limit_s(train, Phase.SAVE, 1.0) == 300.0
    assert hang_limit_s(train, Phase.SAVE, 90.0) == 900.0


def test_hang_limit_of_a_report_is_longer_than_that_of_a_step() -> None:
    assert hang_limit_s(Train(hang_timeout_s=5.0), Phase.REPORT, 0.0) > 5.0


@pytest.mark.parametrize("phase", [Phase.FORWARD, Phase.BACKWARD, Phase.EVALUATION])
def test_hang_limit_is_half_an_hour_while_torch_compiles(phase: Phase) -> None:
    train = Train(hang_timeout_s=300.0)
    assert hang_limit_s(train, phase, 0.0, compiles=True) == 1800.0
    assert hang_limit_s(Train(hang_timeout_s=3600.0, collective_timeout_s=7200.0), phase, 0.0) == 3600.0


def call_uncompiled(model: nn.Module, **_: object) -> None:
    model._compiled_call_impl = model._call_impl


def places_of_compiling(world: World, run: Path) -> list[tuple[str, int]]:
    """Where torch may compile the model, as the watchdog sees it at the beginning of each phase."""
    found = []
    enter = TrainContext.enter

    def noted(context: TrainContext, phase: Phase) -> None:
        enter(context, phase)
        if context.activity.may_compile:
            found.append((str(phase), context.state.progress.step))

    with (
        patch("toolkit.training.attempt.finalize._report"),
        patch.object(TrainContext, "enter", noted),
        # In place of the compiler, which takes long.
        patch.object(nn.Module, "compile", call_uncompiled),
    ):
        worker.run_attempt(RunDir(run), world, NeverStop())
    return found


def test_only_the_first_step_and_the_first_evaluation_may_compile(tmp_path: Path) -> None:
    compiled = ("train.reduction=fast", "train.deterministic=false", "train.compile=on")
    run = create_run(tiny(tmp_path, "train.epochs=1", *compiled), tmp_path / "runs")
    (found,) = in_ranks(1, places_of_compiling, run.path)
    steps = ["data", "forward", "backward", "communication", "optimizer"]
    assert found == [*((phase, 0) for phase in steps), ("evaluation", 4)]


@pytest.mark.parametrize("hang_timeout_s", [0.5, 30.0, 3600.0])
def test_lock_patience_covers_at_least_three_heartbeats(hang_timeout_s: float) -> None:
    assert lock_patience_s(Train(hang_timeout_s=hang_timeout_s)) >= 3 * period_s(hang_timeout_s)


def test_other_ranks_wait_longer_for_rank_0_than_it_waits_for_a_lock() -> None:
    assert lock_patience_s(Train(hang_timeout_s=3600.0)) < Train().rendezvous_timeout_s
