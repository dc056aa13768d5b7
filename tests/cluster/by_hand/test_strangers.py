"""A stranger on the host or in the network changes no byte of a run, which names the stranger."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from tests.cluster.stranger import CONNECTED, Stranger, stranger
from tests.toolkit.support.tiny import assert_equal_runs, events
from toolkit.run.run_dir import RunDir

from .two_machines import Machine, Pair, ended

PORT = 29500


@pytest.fixture
def marker(tmp_path: Path) -> Path:
    """The file that a stranger's payload would make, in a folder that everybody may write."""
    folder = tmp_path / "open"
    folder.mkdir()
    folder.chmod(0o777)
    return folder / "executed"


def on(machine: Machine) -> Callable[[list[str]], list[str]]:
    return partial(machine.network.on_host, machine.name)


def assert_undisturbed(run: RunDir, alone: RunDir, marker: Path) -> None:
    assert_equal_runs(run, alone)
    assert not marker.exists()


def assert_refused(other: Stranger, run: RunDir, address: str) -> None:
    """The stranger has claimed ranks, and the run has named its address, in few lines."""
    assert other.done["claims"] > 0
    refused = events(run, "connection_refused")
    assert len([*refused, *events(run, "connections_refused")]) <= 20
    assert {line["address"] for line in refused} == {address}


def test_ranks_of_one_machine_refuse_another_user_of_it(
    machines: Pair, alone: RunDir, tmp_path: Path, marker: Path
) -> None:
    machine = replace(machines.first, home=tmp_path / "runs")
    with stranger(on(machine), marker) as other:
        ((code, _),) = ended([machine.start("run", machines.config, "--procs", 2)])
    assert code == 0
    assert other.done["connections"] > 0
    assert_undisturbed(machine.run, alone, marker)
    assert_refused(other, machine.run, "127.0.0.1")


@pytest.mark.slow
def test_machines_joined_by_hand_refuse_a_stranger_of_their_network(
    machines: Pair, alone: RunDir, tmp_path: Path, marker: Path
) -> None:
    pair = machines.sharing(tmp_path / "runs")
    with stranger(on(pair.second), marker, pair.first.address, PORT) as other:
        first = pair.start_one(0)
        other.await_word(CONNECTED)
        answers = ended([first, pair.start_one(1)])
    assert [code for code, _ in answers] == [0, 0]
    assert other.done["connections"] > 0
    assert_undisturbed(pair.first.run, alone, marker)
    assert_refused(other, pair.first.run, pair.second.address)


@pytest.mark.slow
def test_ranks_of_two_machines_refuse_other_users_of_the_second(
    machines: Pair, alone: RunDir, tmp_path: Path, marker: Path
) -> None:
    pair = machines.apart(tmp_path)
    with stranger(on(pair.second), marker) as other:
        answers = ended(pair.start())
    assert [code for code, _ in answers] == [0, 0]
    assert other.done["connections"] > 0
    assert_undisturbed(pair.first.run, alone, marker)


@pytest.mark.slow
def test_ranks_of_torchrun_refuse_a_stranger(
    machines: Pair, alone: RunDir, tmp_path: Path, marker: Path
) -> None:
    """The store of torchrun is open to everybody, so nothing in it is trusted."""
    machine = replace(machines.first, home=tmp_path / "runs")
    torchrun = ("-m", "torch.distributed.run", "--nproc-per-node", 2, "--master-port", PORT)
    worker = ("-m", "toolkit.training.worker", machines.config)
    with stranger(on(machine), marker) as other:
        ((code, _),) = ended([machine.run_python(*torchrun, *worker)])
    assert code == 0
    assert other.done["stores"] > 0
    assert_undisturbed(machine.run, alone, marker)
    assert_refused(other, machine.run, "127.0.0.1")
