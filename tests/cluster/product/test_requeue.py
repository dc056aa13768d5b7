"""Each way in which Slurm takes a job's hosts away, and how the run goes on: as if nothing had happened.

The runs of this file train side by side, because each of them mostly waits.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.cluster import Cluster
from tests.cluster.waiting import wait_until
from toolkit.files import read_json_lines
from toolkit.run.run_dir import RunDir, find_runs

from .user import SCRIPTS, User, curve, host_numbers, slowly, starts, weights


@dataclass(frozen=True, slots=True)
class Case:
    """A user with one run in one job."""

    user: User
    run: RunDir
    job_id: str

    def preempt(self) -> None:
        """Take the hosts of the job for something urgent."""
        hosts = starts(self.run)[-1]["hosts"]
        options = (f"--nodes={len(hosts)}", f"--nodelist={','.join(hosts)}", "--gres=gpu:4", "--time=5")
        self.user.sbatch("--partition=urgent", *options, "--wrap=true")

    def finish(self) -> None:
        """Return when the run has finished; result.json is not yet the last word of its ledger."""

        def is_done() -> bool:
            return self.run.result.exists() and "why" in starts(self.run)[-1]

        wait_until(is_done, lambda: self.user.story(self.run))

    def wait_until_stopped(self) -> None:
        """Return when the first start has ended."""
        wait_until(lambda: "why" in starts(self.run)[0], lambda: self.user.story(self.run))

    def events(self, *kinds: str) -> list[dict[str, Any]]:
        return [line for line in read_json_lines(self.run.events) if line["event"] in kinds]

    @property
    def whys(self) -> list[str]:
        return [start["why"] for start in starts(self.run)]

    @property
    def signals(self) -> list[str]:
        """Names of the signals that rank 0 got in the first start, each once, but for those that wake it."""
        names = [name for name, _ in self.events("signal")[0]["signals"] if name != "SIGCONT"]
        return list(dict.fromkeys(names))


#: Stands before the real program on PATH: what puts a job back into the queue is ended with the job, before
#: it has said that it was heard.
_UNANSWERED = """\
#!/bin/sh
{program} "$@" || exit
[ "$1" != requeue ] || exec sleep 600
"""


class Stage:
    """Makes users, each with a home of its own."""

    def __init__(self, cluster: Cluster, table: Path, folder: Path) -> None:
        self.cluster = cluster
        self._table = table
        self._folder = folder

    def user(self, name: str) -> User:
        return User(self.cluster, self._table, self._folder / name)

    def submit(self, name: str, *resources: str, step_s: float = 1.0, is_heard: bool = True) -> Case:
        user = self.user(name)
        env = slowly(step_s)
        if not is_heard:
            env |= user.stand_before("scontrol", _UNANSWERED.format(program=shutil.which("scontrol")))
        run, job_id = user.submit("long", *(f"resources.{each}" for each in resources), env=env)
        return Case(user, run, job_id)


@pytest.fixture(scope="module")
def stage(cluster: Cluster, table: Path, tmp_path_factory: pytest.TempPathFactory) -> Stage:
    return Stage(cluster, table, tmp_path_factory.mktemp("requeue"))


def host(stage: Stage, number: int) -> str:
    """A preemptible job has its host for itself, so that only it makes room."""
    return f"nodelist={stage.cluster.hosts[number]}"


@pytest.fixture(scope="module")
def cases(stage: Stage) -> Iterator[dict[str, Case]]:
    """All runs of this file, each with what happened to it; they are still at it."""
    alone = ("gres=gpu:4", "tasks_per_node=2")
    shared = (host(stage, 3), "gres=gpu:2")
    uneven = "groups=[{nodes: 1, gpus: 0}, {nodes: 1, gpus: 0}]"
    cases = {
        "grace": stage.submit("grace", "partition=preemptible", host(stage, 0), *alone),
        "no grace": stage.submit("nograce", "partition=preemptible0", host(stage, 1), *alone),
        "refused": stage.submit("refused", "partition=preemptible", host(stage, 2), "gres=gpu:4"),
        "signal": stage.submit("signal", "partition=preemptible", *shared),
        "signal, no grace": stage.submit("signal0", "partition=preemptible0", *shared),
        "uneven": stage.submit("uneven", uneven),
        "uneven, refused": stage.submit("unevenly", uneven),
        "unanswered": stage.submit("unanswered", uneven, is_heard=False),
        # Two minutes are not enough for all their steps.
        "chain": stage.submit("chain", "time=2"),
        "same job": stage.submit("same", "time=2", "requeue=same_job"),
        **array(stage),
    }
    try:
        for name, case in cases.items():
            if name not in ("chain", "same job"):
                case.user.wait_for_step(case.run)
        disturb(cases)
        yield cases
    finally:
        stage.user("janitor").run("scancel", "--user=root", check=False)


def disturb(cases: dict[str, Case]) -> None:
    refused, task = cases["refused"], cases["array task"]
    # As a site does that lets no job go back; its owner may do it too.
    for case in (refused, cases["uneven, refused"]):
        case.user.run("scontrol", "update", f"jobid={case.job_id}", "requeue=0")
    for name in ("grace", "no grace", "refused"):
        cases[name].preempt()
    for name in ("uneven", "uneven, refused", "unanswered"):
        case = cases[name]
        assert "asked to save" in case.user.run("stk", "requeue", case.run.run_id).stdout
    task.user.run("scancel", "--signal=USR2", task.job_id)
    for name in ("grace", "no grace", "refused"):
        cases[name].wait_until_stopped()
    with refused.user.cluster.preempting_with_user_signal():
        cases["signal"].preempt()
        for name in ("signal", "signal, no grace"):
            cases[name].wait_until_stopped()


_ARRAY = """\
#!/bin/bash
#SBATCH --array=0-1 --requeue --open-mode=append
# Only the task that is to be disturbed has to wait for it.
[ "$SLURM_ARRAY_TASK_ID" = 1 ] || unset STK_FAULTS
export STK_CONFIG=long.yaml STK_EXPERIMENT_DIR="$STK_EXPERIMENT_DIR/$SLURM_ARRAY_TASK_ID"
exec {train}
"""


def array(stage: Stage) -> dict[str, Case]:
    """Two runs as the tasks of an array; the second's own job id is that of the whole array."""
    user = stage.user("array")
    script = user.home / "array.sh"
    script.write_text(_ARRAY.format(train=SCRIPTS / "train.sh"))
    job_id = user.sbatch("--ntasks=2", script, env=slowly(1.0))
    folders = [user.runs / "0", user.runs / "1"]
    wait_until(lambda: all([*find_runs(each)] for each in folders), lambda: f"no runs in {user.runs}")
    runs = [next(iter(find_runs(folder))) for folder in folders]
    assert user.cluster.job(f"{job_id}_1")["JobId"] == job_id
    return {
        "array sibling": Case(user, runs[0], f"{job_id}_0"),
        "array task": Case(user, runs[1], f"{job_id}_1"),
    }


DISTURBED = (
    "grace", "no grace", "refused", "signal", "signal, no grace", "uneven", "uneven, refused", "unanswered",
    "array task", "chain", "same job",
)  # fmt: skip


@pytest.mark.parametrize("name", DISTURBED)
def test_whatever_stops_a_run_it_ends_as_if_undisturbed(
    cases: dict[str, Case], long_alone: RunDir, name: str
) -> None:
    case = cases[name]
    case.finish()
    assert len(case.whys) > 1
    assert case.whys[-1] == "finished"
    assert curve(case.run) == curve(long_alone)
    assert weights(case.run) == weights(long_alone)
    for first, second in zip(starts(case.run), starts(case.run)[1:], strict=False):
        assert second["first_step"] == first["last_step"] > first["first_step"]


def test_with_a_grace_period_the_run_asks_for_its_place_back(cases: dict[str, Case]) -> None:
    """Slurm would not put back a job that leaves by itself within the grace period."""
    case = cases["grace"]
    case.finish()
    (requeue,) = case.events("requeue")
    assert (requeue["why"], requeue["by"], case.whys[0]) == ("preempted", "stk", "preempted")
    assert case.signals == ["SIGTERM"]
    assert [start["restart"] for start in starts(case.run)] == [0, 1]


def test_the_logs_of_both_starts_and_of_the_job_are_at_hand(cases: dict[str, Case]) -> None:
    case = cases["grace"]
    case.finish()
    listed = case.user.stk_json("logs", case.run.run_id, "--list")
    assert [(each["attempt"], each["rank"], each["why"]) for each in listed if each["attempt"]] == [
        (1, 0, "preempted"), (1, 1, "preempted"), (2, 0, "finished"), (2, 1, "finished"),
    ]  # fmt: skip
    first, second = (
        case.user.run("stk", "logs", case.run.run_id, "--attempt", attempt, "--rank", "1").stdout
        for attempt in ("1", "2")
    )
    assert "INFO rank 1 of 2" in first
    assert "INFO rank 1 of 2" in second
    assert first != second
    merged = case.user.run("stk", "logs", case.run.run_id, "--merge").stdout
    assert {line.partition(" |")[0] for line in merged.splitlines()} == {"rank 0", "rank 1"}
    assert listed[-1]["rank"] == "batch"


def test_without_grace_the_step_at_work_is_saved_and_slurm_puts_the_job_back(
    cases: dict[str, Case],
) -> None:
    case = cases["no grace"]
    case.finish()
    (requeue,) = case.events("requeue")
    assert (requeue["why"], requeue["by"], case.whys[0]) == ("preempted", "slurm", "preempted")
    assert case.signals == ["SIGTERM"]


def test_where_requeueing_is_disabled_the_run_is_submitted_again(cases: dict[str, Case]) -> None:
    case = cases["refused"]
    case.finish()
    assert case.whys[0] == "preempted"
    (chained,) = case.events("chained")
    second = starts(case.run)[1]
    assert second["job_id"] == chained["next_job_id"] != case.job_id
    assert [line["job_id"] for line in read_json_lines(case.run.submissions)] == [
        case.job_id,
        chained["next_job_id"],
    ]
    assert case.user.status(case.run)["job_id"] == chained["next_job_id"]


def test_before_its_time_limit_a_job_submits_the_next_one(cases: dict[str, Case]) -> None:
    case = cases["chain"]
    case.finish()
    assert set(case.whys[:-1]) == {"time_limit"}
    jobs = [start["job_id"] for start in starts(case.run)]
    assert len(set(jobs)) == len(jobs)
    assert {start["restart"] for start in starts(case.run)} == {0}
    assert not case.events("requeue")


def test_same_job_keeps_its_id_through_its_time_limit(cases: dict[str, Case]) -> None:
    case = cases["same job"]
    case.finish()
    assert set(case.whys[:-1]) == {"time_limit"}
    assert {start["job_id"] for start in starts(case.run)} == {case.job_id}
    assert not case.events("chained")


@pytest.mark.parametrize("name", ["signal", "signal, no grace"])
def test_a_preemption_by_the_warning_signal_is_not_taken_for_the_warning(
    cases: dict[str, Case], name: str
) -> None:
    case = cases[name]
    case.finish()
    assert "SIGUSR2" in case.signals
    assert case.whys == ["preempted", "finished"]


def test_one_task_of_an_array_comes_back_and_its_sibling_stays(cases: dict[str, Case]) -> None:
    task, sibling = cases["array task"], cases["array sibling"]
    task.finish()
    sibling.finish()
    assert sibling.whys == ["finished"]
    assert task.whys == ["requested", "finished"]
    assert task.events("requeue")[0]["job_id"] == task.job_id


def test_a_job_of_uneven_hosts_comes_back_as_a_whole(cases: dict[str, Case]) -> None:
    case = cases["uneven"]
    case.finish()
    assert case.whys == ["requested", "finished"]
    assert [start["job_id"] for start in starts(case.run)] == [case.job_id] * 2
    assert [len(start["hosts"]) for start in starts(case.run)] == [2, 2]
    listed = case.user.stk_json("logs", case.run.run_id, "--list")
    assert [(each["attempt"], each["rank"]) for each in listed if each["attempt"]] == [
        (1, 0), (1, 1), (2, 0), (2, 1),
    ]  # fmt: skip


def test_a_job_of_uneven_hosts_that_may_not_go_back_is_followed_by_another(cases: dict[str, Case]) -> None:
    case = cases["uneven, refused"]
    case.finish()
    assert case.whys == ["requested", "finished"]
    (chained,) = case.events("chained")
    assert [start["job_id"] for start in starts(case.run)] == [case.job_id, chained["next_job_id"]]
    assert [len(start["hosts"]) for start in starts(case.run)] == [2, 2]


def test_a_job_that_is_back_before_it_hears_so_is_not_submitted_again(cases: dict[str, Case]) -> None:
    case = cases["unanswered"]
    case.finish()
    assert case.whys == ["requested", "finished"]
    assert [start["job_id"] for start in starts(case.run)] == [case.job_id] * 2
    assert not case.events("chained", "dependants")


# ---- elastic jobs, and jobs that were done


def test_an_elastic_job_starts_on_the_hosts_that_are_free(
    stage: Stage, user: User, quick_alone: RunDir
) -> None:
    blocker = user.sbatch("--nodes=2", "--gres=gpu:4", "--time=5", "--wrap=sleep 60")
    stage.cluster.wait_for_state(blocker, "RUNNING")
    overrides = ("resources.nodes=1-4", "resources.gres=gpu:4", "resources.tasks_per_node=2")
    run, job_id = user.submit("quick", *overrides)
    user.wait_until_finished(run, job_id)
    user.run("scancel", blocker)
    assert starts(run)[0]["world_size"] == 4
    assert host_numbers(run) == [0, 0, 1, 1]
    assert weights(run) == weights(quick_alone)


def test_a_run_that_had_finished_leaves_at_once_when_slurm_starts_it_again(user: User) -> None:
    run, job_id = user.submit("quick")
    user.wait_until_finished(run, job_id)
    before = run.result.read_bytes()
    user.run("scontrol", "requeue", job_id)
    wait_until(lambda: user.cluster.job(job_id)["Restarts"] == "1", lambda: str(user.cluster.job(job_id)))
    user.wait_until_finished(run, job_id)
    assert len(starts(run)) == 1
    assert run.result.read_bytes() == before
