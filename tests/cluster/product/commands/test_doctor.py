"""stk doctor on a real cluster: what it reads there, a host that it asks, and nothing left in the queue."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cluster.product.user import User, Users
from tests.cluster.waiting import wait_until


@pytest.fixture(scope="module")
def told(users: Users) -> tuple[User, Any]:
    """What it says to a user who asks on a host, too."""
    user = users.user("doctor")
    return user, user.stk_json("doctor", "quick.yaml", "resources.partition=preemptible", "--on-node")


def found(document: Any, words: str) -> Any:
    (finding,) = [each for each in document["findings"] if words in each["found"]]
    return finding


def test_doctor_reads_the_cluster(told: tuple[User, Any]) -> None:
    _, document = told
    names = [row["name"] for row in document["partitions"]]
    assert names == ["main", "preemptible", "preemptible0", "urgent"]
    assert document["partitions"][1]["gpus"] == {"gpu": 16}
    assert document["partitions"][1]["preempted_by"] == ["urgent"]
    saves, waits = "15 s to save: GraceTime 10 + KillWait 5", "a requeued job may start after 5 s"
    for words in (saves, waits, "there is accounting", "there are hosts that fit it"):
        assert found(document, words)["level"] == "ok"
    of_slurm = [each["found"] for each in document["findings"] if each["section"] == "Slurm"]
    assert [words for words in of_slurm if ": unknown (" in words] == []


def test_doctor_asks_a_host_and_exchanges_files_with_it(told: tuple[User, Any]) -> None:
    user, document = told
    answers = document["facts"]["host"]
    host = answers["machine"]["host"]
    assert host in user.cluster.hosts
    assert answers["torch"]["has_gloo"]
    assert answers["exchange"]["sees_folder"]
    assert answers["exchange"]["lock_holds"]
    assert found(document, f"a file made here is seen on {host}")
    address = user.cluster.addresses[host]
    assert found(document, f"network: eth0 ({address}")["section"] == f"Host {host}"


@pytest.mark.slow
def test_ctrl_c_while_doctor_waits_for_a_host_leaves_no_job(told: tuple[User, Any]) -> None:
    user, _ = told

    def jobs() -> str:
        return user.run("squeue", "--noheader", "--format=%j %T").stdout

    # A partition that has no host left for it.
    blocker = user.sbatch("--partition=urgent", "--nodes=4", "--exclusive", "--wrap=sleep 600")
    user.cluster.wait_for_state(blocker, "RUNNING")
    # Tests that run in the background hand on that SIGINT is ignored.
    waiting = user.start("env", "--default-signal=INT", "stk", "doctor", "--on-node", "--partition=urgent")
    try:
        wait_until(lambda: "stk-doctor" in jobs(), lambda: f"it does not wait for a host: {jobs()}")
        waiting.send_signal(2)
        assert waiting.wait(60) == 130
        wait_until(lambda: "stk-doctor" not in jobs(), lambda: f"its job is still there: {jobs()}")
    finally:
        waiting.kill()
        user.run("scancel", blocker)
    assert list(user.home.glob("**/.stk-doctor*")) == []
