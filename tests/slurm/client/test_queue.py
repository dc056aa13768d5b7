"""Where a job stands, from what the controller and accounting say."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from slurm.client import queue
from slurm.client.parse import SEPARATOR, Accounted, Job, parse_jobs
from slurm.client.queue import JobState, from_accounting, from_controller, poll
from tests.slurm.support.stubs import Stubs
from toolkit.errors import SlurmUnavailable

SQUEUE = (Path(__file__).parents[1] / "support" / "recorded" / "squeue.txt").read_text()
JOB = next(job for job in parse_jobs(SQUEUE) if job.job_id == "114")
START = Accounted(
    job_id="1", raw_id="1", state="COMPLETED", exit_code="0:0", started=None, hosts="n1", name="mine.0"
)


def _job(state: str, reason: str = "", *, restarts: int = 0, requeue: bool = True) -> Job:
    return replace(JOB, state=state, reason=reason, restarts=restarts, requeue=requeue)


@pytest.mark.parametrize(
    "job, state",
    [
        (_job("PENDING", "Resources"), "pending"),
        (_job("PENDING", "BeginTime", restarts=1), "requeued"),
        (_job("PENDING", "Priority", restarts=3), "requeued"),
        (_job("PENDING", "JobHeldUser"), "held"),
        (_job("PENDING", "JobHeldAdmin", restarts=1), "held"),
        (_job("PENDING", "launch failed requeued held"), "held"),
        (_job("PENDING", "JobHoldMaxRequeue", restarts=5), "held"),
        (_job("CONFIGURING"), "pending"),
        (_job("RUNNING", restarts=2), "running"),
        (_job("COMPLETING"), "running"),
        (_job("SIGNALING"), "running"),
        (_job("SUSPENDED"), "running"),
        (_job("REQUEUED"), "requeued"),
        (_job("REQUEUED", requeue=False), "failed"),
        (_job("REQUEUE_HOLD"), "held"),
        (_job("SPECIAL_EXIT"), "held"),
        # With PreemptMode=CANCEL it has ended, although it may be requeued.
        (_job("PREEMPTED"), "failed"),
        (_job("PREEMPTED", requeue=False), "failed"),
        (_job("BOOT_FAIL"), "requeued"),
        (_job("NODE_FAIL"), "requeued"),
        (_job("NODE_FAIL", requeue=False), "failed"),
        (_job("COMPLETED"), "finished"),
        (_job("CANCELLED", "JobHeldUser"), "cancelled"),
        (_job("FAILED"), "failed"),
        (_job("TIMEOUT"), "failed"),
        (_job("OUT_OF_MEMORY"), "failed"),
        (_job("DEADLINE"), "failed"),
        (_job("LAUNCH_FAILED"), "failed"),
        (_job("RECONFIG_FAIL"), "failed"),
        (_job("SOME_STATE_OF_A_LATER_RELEASE"), "unknown"),
    ],
)
def test_state_word_of_the_controller_maps_to_a_job_state(job: Job, state: str) -> None:
    found = from_controller(job)
    assert (found.state, found.is_terminal) == (state, state in ("finished", "failed", "cancelled"))


@pytest.mark.parametrize(
    "reason, advice",
    [
        ("PartitionTimeLimit", "resources.time"),
        ("PartitionNodeLimit", "resources.nodes"),
        ("QOSMaxWallDurationPerJobLimit", "time limit"),
        ("AssocMaxWallDurationPerJobLimit", "time limit"),
        ("AssocMaxGRESPerJob", "request less"),
        ("QOSMinGRESPerJob", "request less"),
        ("BadConstraints", "constraint"),
        ("DependencyNeverSatisfied", "cancel"),
        ("Job's account not known, so it can't use this partition (small allows physics)", "account"),
    ],
)
def test_a_reason_that_never_clears_comes_with_advice(reason: str, advice: str) -> None:
    state = from_controller(_job("PENDING", reason))
    assert state.state == "pending"
    assert advice in state.advice


@pytest.mark.parametrize(
    "reason",
    [
        *("Resources", "Priority", "BeginTime", "Dependency", "JobArrayTaskLimit", "PartitionDown", ""),
        *("AssocMaxJobsLimit", "AssocGrpGRES", "QOSMaxJobsPerUserLimit", "QOSMaxGRESPerUser"),
        "ReqNodeNotAvail, UnavailableNodes:n1",
    ],
)
def test_reason_that_clears_by_itself_comes_without_advice(reason: str) -> None:
    assert from_controller(_job("PENDING", reason)).advice == ""


@pytest.mark.parametrize(
    "reason, advice",
    [("JobHeldUser", "scontrol release 114"), ("JobHeldAdmin", "only an administrator can release it")],
)
def test_a_held_job_says_who_releases_it(reason: str, advice: str) -> None:
    assert from_controller(_job("PENDING", reason)).advice == f"held ({reason}): {advice}"


@pytest.mark.parametrize(
    "words, state",
    [
        (["COMPLETED"], "finished"),
        (["FAILED"], "failed"),
        (["REQUEUED", "PREEMPTED", "COMPLETED"], "finished"),
        (["COMPLETED", "PREEMPTED"], "failed"),
        (["NODE_FAIL"], "failed"),
        (["REQUEUED"], "failed"),
        (["CANCELLED by 1000"], "cancelled"),
        (["OUT_OF_MEMORY"], "failed"),
        (["RUNNING"], "unknown"),
        (["PENDING"], "unknown"),
        (["SOMETHING_NEW"], "unknown"),
    ],
)
def test_last_accounting_record_maps_to_a_job_state(words: list[str], state: str) -> None:
    found = from_accounting([replace(START, state=word) for word in words])
    assert (found.state, found.restarts, found.name) == (state, len(words) - 1, "mine.0")
    others = [replace(START, name="other"), *(replace(START, state=word) for word in words)]
    assert from_accounting(others) == found


def test_accounting_reason_names_the_cancelling_user_or_the_exit_code() -> None:
    assert from_accounting([replace(START, state="CANCELLED by 0")]).reason == "cancelled by user id 0"
    assert from_accounting([replace(START, state="FAILED", exit_code="3:0")]).reason == "exit code 3:0"


def _sacct(*rows: tuple[str, str, str]) -> str:
    """Answer of sacct: (id, own number, state) of each start."""
    return "".join(SEPARATOR.join((*row, "0:0", "Unknown", "n1", "mine.0")) + "\n" for row in rows)


def test_jobs_known_to_the_controller_are_polled_with_one_call(stubs: Stubs) -> None:
    stubs.answers("squeue", SQUEUE)
    stubs.answers("sacct", _sacct())
    ids = ["114", "117", "120", "115_2", "123"]
    states = poll(ids)
    assert list(states) == ids
    assert [states[key].state for key in ids] == ["running", "pending", "running", "pending", "cancelled"]
    assert states["120"].restarts == 1
    assert (len(stubs.calls("squeue")), len(stubs.calls("sacct"))) == (1, 0)


def test_job_name_of_any_bytes_hides_no_job(stubs: Stubs) -> None:
    """Slurm prints what the owner of a job has called it."""
    stubs.answers("squeue", "")
    odd = SQUEUE.encode().replace(b"we|ird, na me=x\ttab", b"a|b\xff\xfe\x00\x1b[2J\r|c")
    assert odd != SQUEUE.encode()
    (stubs.folder / "squeue.answer").write_bytes(odd)
    states = poll(["114", "117"])
    assert [states[key].state for key in ("114", "117")] == ["running", "pending"]


def test_jobs_forgotten_by_the_controller_are_polled_with_one_more_call(stubs: Stubs) -> None:
    stubs.answers("squeue", SQUEUE)
    stubs.answers("sacct", _sacct(("7", "7", "PREEMPTED"), ("7", "7", "COMPLETED"), ("8_1", "9", "FAILED")))
    states = poll(["114", "7", "8_1", "9", "99999", "7"])
    found = {key: state.state for key, state in states.items()}
    assert found == {"114": "running", "7": "finished", "8_1": "failed", "9": "failed", "99999": "unknown"}
    assert states["7"].restarts == 1
    assert not states["99999"].is_terminal
    (call,) = stubs.calls("sacct")
    assert "--jobs=7,8,9,99999" in call
    assert "--duplicates" in call


def test_array_task_is_found_by_its_own_job_number_too(stubs: Stubs) -> None:
    stubs.answers("squeue", SQUEUE)
    facts = {"hosts": "rack1node01", "raw_id": "124", "work_dir": "/home/ada", "name": "bn.sh"}
    state = JobState(state="running", slurm_state="RUNNING", started=JOB.started, **facts)
    assert poll(["115_0", "124"]) == {"115_0": state, "124": state}


def test_a_task_without_a_record_was_cancelled_if_its_array_has_one(stubs: Stubs) -> None:
    stubs.answers("squeue", "")
    stubs.answers("sacct", _sacct(("8_1", "9", "COMPLETED"), ("8_[3,4%1]", "8", "PENDING")))
    states = poll(["8_1", "8_2", "7_2", "8"])
    assert [each.state for each in states.values()] == ["finished", "cancelled", "unknown", "unknown"]


def test_a_whole_array_or_uneven_job_runs_while_any_part_runs(stubs: Stubs) -> None:
    stubs.answers("squeue", SQUEUE)
    states = poll(["115", "121"])
    assert [states[key].state for key in ("115", "121")] == ["running", "running"]


def test_without_accounting_a_forgotten_job_is_unknown(stubs: Stubs) -> None:
    stubs.fails("squeue", "slurm_load_jobs error: Invalid job id specified\n")
    assert poll(["5"]) == {"5": queue.UNKNOWN}


def test_poll_raises_slurm_unavailable_while_no_controller_answers(stubs: Stubs) -> None:
    stubs.fails("squeue", "slurm_load_jobs error: Unable to contact slurm controller (connect failure)\n")
    stubs.answers("sacct", _sacct(("5", "5", "COMPLETED")))
    with pytest.raises(SlurmUnavailable):
        poll(["5"])


def test_state_of_an_uneven_job_is_that_of_its_leader(stubs: Stubs) -> None:
    """The other component still runs while the leader has been put back."""
    lines = SQUEUE.replace("121+0\x1f121\x1fRUNNING", "121+0\x1f121\x1fPENDING")
    stubs.answers("squeue", lines)
    state = poll(["121"])["121"]
    assert (state.state, state.raw_id) == ("pending", "121")


def test_dependency_of_a_pending_job_is_read(stubs: Stubs) -> None:
    record = SQUEUE.split("\x1e\n")[0].split("\x1f")
    record[2], record[3], record[11] = "PENDING", "Dependency", "afterok:12(unfulfilled),afterany:13_2"
    stubs.answers("squeue", "\x1f".join(record) + "\x1e\n")
    assert poll(["123"])["123"].depends == "afterok:12(unfulfilled),afterany:13_2"


def test_very_many_array_tasks_are_polled_by_their_array(stubs: Stubs) -> None:
    """One argument of a program may have 128 KiB."""
    stubs.answers("squeue", SQUEUE)
    tasks = [f"115_{task}" for task in range(20_000)]
    states = poll([*tasks, "114"])
    assert (states["115_0"].state, states["114"].state) == ("running", "running")
    (call,) = stubs.calls("squeue")
    assert "--jobs=115,114" in call


def test_only_the_newest_of_too_many_jobs_are_polled(stubs: Stubs) -> None:
    stubs.answers("squeue", SQUEUE)
    states = poll([str(number) for number in range(100, 40_000)])
    assert len(states) == 39_900
    (call,) = stubs.calls("squeue")
    (ids,) = [argument for argument in call if argument.startswith("--jobs=")]
    assert ids.startswith("--jobs=39999,39998,")
    assert len(ids) < 131_072
