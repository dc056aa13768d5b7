"""Worlds of uneven hosts, worlds that share a host, and one that cannot come together."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cluster.cluster import Cluster
from tests.cluster.product.user import SCRIPTS, User, assert_same_training, curve, ranks, weights
from tests.cluster.waiting import wait_until
from tests.toolkit.support.tiny import events
from toolkit.files import read_json
from toolkit.run.run_dir import RunDir

pytestmark = pytest.mark.slow


def test_five_ranks_on_three_hosts_train_as_one(user: User, quick_alone: RunDir) -> None:
    """Dealt out in turn, neighbours are on different hosts. Five is no power of two, so sums are rounded
    otherwise; the samples are the same.
    """
    observed = {"PYTHONPATH": str(user.install_probe()), "STK_CONFIG": "quick.yaml"}
    shape = ("--nodes=3", "--ntasks=5", "--ntasks-per-node=2", "--distribution=cyclic")
    job_id = user.sbatch(*shape, SCRIPTS / "train.sh", env=observed)
    user.wait_for_end(job_id)
    run = user.only_run()
    user.wait_until_finished(run, job_id)
    environments = user.environments_of_ranks()
    assert {environment["SLURM_STEP_TASKS_PER_NODE"] for environment in environments} == {"2(x2),1"}
    assert [environment["LOCAL_WORLD_SIZE"] for environment in environments] == ["2", "2", "1", "2", "2"]
    assert [rank["local_rank"] for rank in ranks(run)] == [0, 0, 0, 1, 1]
    assert [rank["node"] for rank in ranks(run)] == [0, 1, 2, 0, 1]
    ours, theirs = curve(run), curve(quick_alone)
    assert [line["step"] for line in ours] == [line["step"] for line in theirs]
    assert [line["loss"] for line in ours] == pytest.approx([line["loss"] for line in theirs], rel=1e-5)


def test_an_uneven_job_is_one_world(user: User, quick_alone: RunDir) -> None:
    """One host with two GPUs and two with one: one step over both components, each rank with its device."""
    observed = {"PYTHONPATH": str(user.install_probe())}
    groups = "resources.groups=[{nodes: 1, gpus: 2}, {nodes: 2, gpus: 1}]"
    run, job_id = user.submit("quick", groups, env=observed)
    user.wait_until_finished(run, job_id)
    found = ranks(run)
    assert [rank["rank"] for rank in found] == [0, 1, 2, 3]
    assert [rank["local_rank"] for rank in found] == [0, 1, 0, 0]
    assert [rank["node"] for rank in found] == [0, 0, 1, 2]
    assert len({rank["host"] for rank in found}) == 3
    assert [len(rank["cuda_visible_devices"].split(",")) for rank in found] == [2, 2, 1, 1]
    sizes = [environment["LOCAL_WORLD_SIZE"] for environment in user.environments_of_ranks()]
    assert sizes == ["2", "2", "1", "1"]
    assert user.status(run)["state"] == "finished"
    assert_same_training(run, quick_alone)


def test_two_jobs_on_one_host_both_train(user: User, quick_alone: RunDir) -> None:
    probe = user.install_probe()
    (probe / "hold").touch()
    where = (f"resources.nodelist={user.cluster.hosts[1]}", "resources.tasks_per_node=2")
    held = {"PYTHONPATH": str(probe)}
    jobs = [user.submit("quick", *where, f"name={name}", env=held) for name in ("one", "other")]
    (one, _), (other, _) = jobs
    wait_until(lambda: len([*probe.glob("waiting.*")]) == 4, lambda: user.story(one) + user.story(other))
    (probe / "hold").unlink()
    for run, job_id in jobs:
        user.wait_until_finished(run, job_id)
        assert {rank["host"] for rank in ranks(run)} == {user.cluster.hosts[1]}
        assert weights(run) == weights(quick_alone)
    assert ranks(one)[0]["master_port"] != ranks(other)[0]["master_port"]


# ---- two hosts that do not reach each other

TIMEOUT_S = 6


@pytest.fixture
def two_hosts(cluster: Cluster) -> Iterator[tuple[str, str]]:
    """The cluster's first and last host; whatever is done to their network is undone at the end."""
    hosts = cluster.hosts[0], cluster.hosts[-1]
    yield hosts
    cluster.network.restore(*hosts)


def test_host_that_cannot_reach_rank_0_is_named(user: User, two_hosts: tuple[str, str]) -> None:
    """The network between the two fails before the ranks have found each other. Slurm reaches both: it would
    end the job of a host that is silent for ten seconds.
    """
    probe = user.install_probe()
    (probe / "hold").touch()
    first, second = two_hosts
    run, job_id = user.submit(
        "quick",
        "resources.nodes=2",
        f"resources.nodelist={first},{second}",
        f"train.rendezvous_timeout_s={TIMEOUT_S}",
        env={"PYTHONPATH": str(probe)},
    )
    try:
        wait_until(lambda: len([*probe.glob("waiting.*")]) == 2, lambda: user.story(run))
        user.cluster.network.separate(first, second)
        (probe / "hold").unlink()
        wait_until(lambda: len(events(run, "failure")) == 2, lambda: user.story(run))
        failures = events(run, "failure")
    finally:
        user.run("scancel", job_id)
    assert {failure["class"] for failure in failures} == {"rendezvous"}
    failure = read_json(run.failure)
    assert failure["phase"] == "rendezvous"
    assert second in failure["message"], failure
    word = f"host {second} (rank 1) cannot reach rank 0 on host {first}"
    assert word in (run.logs / f"{job_id}.0.0.rank_00001.log").read_text()
