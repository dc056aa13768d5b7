"""Commands of sbatch and salloc that users type, and what they leave behind: the run trains all the same."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cluster.product.user import User, assert_same_training, host_numbers, weights
from toolkit.run.run_dir import RunDir


@pytest.mark.slow
def test_sbatch_wrap_on_two_hosts_trains_on_one_and_names_both(user: User, quick_alone: RunDir) -> None:
    job_id = user.sbatch("--nodes=2", "--wrap=stk run quick.yaml resources.tasks_per_node=2")
    assert user.wait_for_end(job_id) == "COMPLETED"
    run = user.only_run()
    user.wait_until_finished(run, job_id)
    assert host_numbers(run) == [0, 0]
    assert_same_training(run, quick_alone)
    shown = (user.home / f"{job_id}.out").read_text()
    assert "2 hosts" in shown
    assert sum(host in shown for host in user.cluster.hosts) == 2


@pytest.mark.slow
def test_a_job_submitted_inside_an_allocation_with_memory_has_its_own_memory(
    user: User, quick_alone: RunDir
) -> None:
    command = ("stk", "submit", "quick.yaml", "resources.mem_per_cpu=200M", "--json")
    answer = json.loads(user.run("salloc", "--ntasks=1", "--mem=512M", *command).stdout)
    run = RunDir(Path(answer["run_dir"]))
    user.wait_until_finished(run, answer["job_id"])
    assert_same_training(run, quick_alone)


@pytest.mark.slow
def test_background_process_of_setup_does_not_keep_the_job_alive(user: User, quick_alone: RunDir) -> None:
    run, job_id = user.submit("quick", "resources.setup=['sleep 100000 > helper.log 2>&1 &']")
    user.wait_until_finished(run, job_id)
    assert weights(run) == weights(quick_alone)
