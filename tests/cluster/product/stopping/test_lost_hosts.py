"""Hosts that die or fall silent, a controller that is away: the run goes on as if nothing had happened."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cluster.cluster import Cluster
from tests.cluster.product.user import User, assert_same_training, slowly, starts
from tests.cluster.waiting import wait_until
from toolkit.files import read_json_lines
from toolkit.run.run_dir import RunDir


@pytest.fixture
def hosts_mended(cluster: Cluster) -> Iterator[Cluster]:
    """Whatever a test does to the hosts, the next one finds them all well."""
    yield cluster
    # Once and for all: a host that only seemed to be away must be started, too, once it has been killed.
    for host in [host for host in cluster.hosts if _is_lost(cluster.host_state(host))]:
        cluster.kill_host(host)
        cluster.start_host(host)


def _is_lost(state: str) -> bool:
    return state.endswith("*") or "down" in state


def _submit_and_watch(user: User, hosts: int = 1) -> tuple[RunDir, str]:
    run, job_id = user.submit("long", f"resources.nodes={hosts}", env=slowly(0.12))
    user.wait_for_step(run)
    return run, job_id


@pytest.mark.parametrize(
    "node", [pytest.param(0, id="of rank 0"), pytest.param(1, id="of another rank", marks=pytest.mark.slow)]
)
def test_run_resumes_without_the_host_that_died(
    user: User, hosts_mended: Cluster, long_alone: RunDir, node: int
) -> None:
    run, job_id = _submit_and_watch(user, hosts=2)
    dead = starts(run)[0]["hosts"][node]
    hosts_mended.kill_host(dead)
    user.wait_until_finished(run, job_id)
    first, second = starts(run)
    assert dead in first["hosts"]
    assert dead not in second["hosts"]
    assert second["resumed"] == (second["first_step"] > 0)
    assert_same_training(run, long_alone)


@pytest.mark.slow
def test_run_resumes_without_the_host_whose_network_is_cut(
    user: User, hosts_mended: Cluster, long_alone: RunDir
) -> None:
    """Its processes live on, rank 0 among them, which holds the run's lock: nobody waits for it."""
    run, job_id = _submit_and_watch(user, hosts=2)
    silent = starts(run)[0]["hosts"][0]
    hosts_mended.network.cut(silent)
    user.wait_until_finished(run, job_id)
    assert silent not in starts(run)[-1]["hosts"]
    assert_same_training(run, long_alone)


@pytest.mark.slow
def test_controller_restart_does_not_interrupt_a_run(
    user: User, cluster: Cluster, long_alone: RunDir
) -> None:
    run, job_id = _submit_and_watch(user)
    cluster.stop_controller()
    cluster.start_controller()
    user.wait_until_finished(run, job_id)
    assert len(starts(run)) == 1
    assert_same_training(run, long_alone)


@pytest.mark.slow
def test_stopped_run_is_requeued_once_the_controller_is_back(
    user: User, cluster: Cluster, long_alone: RunDir
) -> None:
    run, job_id = _submit_and_watch(user)
    (start,) = starts(run)
    rank_0 = next(iter(read_json_lines(run.ranks(start["nonce"]))))
    cluster.stop_controller()
    try:
        kill = ("kill", "-USR2", str(rank_0["pid"]))
        cluster.run(*cluster.network.on_host(rank_0["host"], kill))
        wait_until(lambda: "time_end" in starts(run)[0], lambda: user.story(run))
    finally:
        cluster.start_controller()
    user.wait_until_finished(run, job_id)
    assert len(starts(run)) == 2
    assert_same_training(run, long_alone)
