"""Connected launchers exchange their state and notice the loss of a machine."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support.patience import PATIENCE_S, until
from tests.support.ports import free_port
from toolkit.files import read_json, write_json
from toolkit.launch.machines.coordination import Coordinator, Participant, meet_nodes
from toolkit.launch.machines.layout import Machines
from toolkit.run.failure.records import failure_record, first_failure, write_first
from toolkit.run.run_dir import RunDir

NONCE = "start-1"
COUNTS = (2, 1, 1)


@dataclass(frozen=True, slots=True)
class Three:
    """A crew of three machines, each with a folder of its own."""

    leader: Coordinator
    members: tuple[Participant, Participant]
    runs: tuple[RunDir, RunDir, RunDir]


@pytest.fixture
def three(tmp_path: Path) -> Iterator[Three]:
    port = free_port()
    machines = [
        Machines(counts=COUNTS, node=node, master_addr="127.0.0.1", master_port=port) for node in range(3)
    ]
    with ExitStack() as stack:
        pool = stack.enter_context(ThreadPoolExecutor(3))
        entering = [
            pool.submit(stack.enter_context, meet_nodes(each, RunDir(tmp_path / "run"), PATIENCE_S))
            for each in machines
        ]
        leader, first, second = (each.result() for each in entering)
        runs = (RunDir(tmp_path / "0"), RunDir(tmp_path / "1"), RunDir(tmp_path / "2"))
        for run in runs:
            run.path.mkdir()
        yield Three(leader, (first, second), runs)
        # All at once, for each waits a second for the others to close.
        list(pool.map(lambda node: node.close(), (leader, first, second)))


def begin(three: Three) -> None:
    three.leader.start(NONCE)
    for member in three.members:
        assert until(member.order) == {"start": NONCE}
        member.start(NONCE)


#: Of the first of two other machines.
KILLED = failure_record(NONCE, "killed", "it died", rank=2, host="b", phase="backward", step=5)


def test_the_address_of_rank_0_is_sent_to_machines_without_its_folder(three: Three) -> None:
    begin(three)
    place = {"host": "a", "addresses": ["10.0.0.1"], "port": 1234}
    three.runs[0].rendezvous(NONCE).parent.mkdir()
    write_json(three.runs[0].rendezvous(NONCE), place)
    for member, run in zip(three.members, three.runs[1:], strict=True):

        def has_arrived(member: Participant = member, run: RunDir = run) -> bool:
            assert not three.leader.has_failed(three.runs[0], NONCE)
            assert not member.has_failed(run, NONCE)
            return read_json(run.rendezvous(NONCE)) == place

        until(has_arrived)


def test_a_failure_on_one_machine_reaches_all_machines(three: Three) -> None:
    begin(three)
    here, there = three.members
    assert not there.has_failed(three.runs[2], NONCE)
    here.fail()
    until(lambda: three.leader.has_failed(three.runs[0], NONCE))
    until(lambda: there.has_failed(three.runs[2], NONCE))


def test_machine_0_collects_all_statuses_and_the_first_failure(three: Three) -> None:
    begin(three)
    here, there = three.members
    write_first(three.runs[1], KILLED)
    here.report(three.runs[1], NONCE, [-9], wants_stop=False)
    there.report(three.runs[2], NONCE, [75], wants_stop=True)
    assert three.leader.reports(three.runs[0], NONCE) == [-9, 75]
    assert three.leader.is_complete
    assert three.leader.wants_stop
    failure = first_failure(three.runs[0], NONCE)
    assert (failure["class"], failure["rank"]) == ("killed", 2)


def test_the_order_to_leave_is_sent_with_the_failure(three: Three) -> None:
    begin(three)
    write_json(three.runs[0].failure, KILLED)
    three.leader.leave(three.runs[0], 4)
    for member in three.members:
        assert until(member.order) == {"leave": 4, "failure": KILLED}


def test_a_new_attempt_starts_without_the_earlier_failure(three: Three) -> None:
    begin(three)
    three.members[0].fail()
    until(lambda: three.leader.has_failed(three.runs[0], NONCE))
    for member, run in zip(three.members, three.runs[1:], strict=True):
        until(lambda member=member, run=run: member.has_failed(run, NONCE))  # type: ignore[misc]
        member.report(run, NONCE, [4], wants_stop=False)
    assert three.leader.reports(three.runs[0], NONCE) == [4, 4]
    begin(three)
    assert not three.leader.has_failed(three.runs[0], NONCE)
    assert not three.members[1].has_failed(three.runs[2], NONCE)


def test_a_lost_machine_is_a_node_failure_with_its_name(three: Three) -> None:
    begin(three)
    gone, there = three.members
    gone.close()
    until(lambda: three.leader.has_failed(three.runs[0], NONCE))
    until(lambda: there.has_failed(three.runs[2], NONCE))
    there.report(three.runs[2], NONCE, [75], wants_stop=False)
    assert three.leader.reports(three.runs[0], NONCE) == [-9, 75]
    assert not three.leader.is_complete
    assert three.leader.gone == f"node 1 (rank 2) on {socket.gethostname()}"
    failure = first_failure(three.runs[0], NONCE)
    assert (failure["class"], failure["rank"], failure["host"]) == ("node_failure", 2, socket.gethostname())


def test_the_other_machines_leave_if_machine_0_is_gone(three: Three) -> None:
    begin(three)
    three.leader.close()
    for member, run in zip(three.members, three.runs[1:], strict=True):
        until(lambda member=member, run=run: member.has_failed(run, NONCE))  # type: ignore[misc]
        assert not member.is_complete
        assert member.order() == {"leave": 4, "failure": None}


@pytest.mark.parametrize(
    "order",
    [
        {"start": "../../tmp/evil"},
        {"start": "/tmp/evil"},
        {"start": "a\nb"},
        {"start": ""},
        {"start": 1},
        {"leave": "now", "failure": None},
        {"leave": 0, "failure": "none"},
        {"leave": 0},
    ],
)
def test_an_invalid_order_is_ignored(three: Three, order: dict[str, Any]) -> None:
    """The name of an attempt becomes a part of file names."""
    three.leader._send_all(**order)
    three.leader.start(NONCE)
    assert until(three.members[0].order) == {"start": NONCE}
