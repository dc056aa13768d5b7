"""Slurm's programs when they are missing, refuse, hang or answer; real ones in tests/cluster."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from unittest.mock import Mock

import pytest

from slurm.client import programs
from slurm.client.programs import AnswerLost
from tests.slurm.support.stubs import Stubs
from tests.support.patience import wait_for_the_end_of
from toolkit.errors import RunBusy, SlurmRefused, SlurmUnavailable

RECORDED = Path(__file__).parents[1] / "support" / "recorded"
NO_CONTROLLER = "slurm_load_partitions: Unable to contact slurm controller (connect failure)\n"


def test_a_program_may_be_given_a_folder(stubs: Stubs, tmp_path: Path) -> None:
    stubs.add("sbatch", "pwd")
    folder = tmp_path / "a folder; with 'odd' characters"
    folder.mkdir()
    assert programs.call("sbatch", cwd=folder) == f"{folder}\n"


def test_a_program_never_waits_for_the_keyboard(stubs: Stubs) -> None:
    stubs.add("scancel", "read answer && echo read || echo end")
    assert programs.call("scancel") == "end\n"


def test_error_of_a_missing_program_names_it_and_the_local_option(stubs: Stubs) -> None:
    with pytest.raises(SlurmUnavailable, match=r"squeue is not on PATH: .*--cluster local"):
        programs.call("squeue")


def test_a_missing_folder_is_not_taken_for_a_missing_program(stubs: Stubs, tmp_path: Path) -> None:
    stubs.answers("sbatch", "1\n")
    with pytest.raises(SlurmRefused, match=r"folder .* does not exist"):
        programs.call("sbatch", cwd=tmp_path / "nowhere")


def test_a_program_that_cannot_be_started_is_unavailable(stubs: Stubs) -> None:
    (stubs.folder / "sinfo").write_text("not a program")
    with pytest.raises(SlurmUnavailable, match="sinfo"):
        programs.call("sinfo")


def test_a_refusal_shows_slurms_own_lines_without_its_hints_on_usage(stubs: Stubs) -> None:
    stubs.fails(
        "sbatch", "sbatch: unrecognized option '--frob'\nTry \"sbatch --help\" for more information\n"
    )
    with pytest.raises(SlurmRefused) as refusal:
        programs.call("sbatch", "--frob", "my job.sh")
    assert str(refusal.value) == (
        "Slurm refused (exit code 1): sbatch --frob 'my job.sh'\n  sbatch: unrecognized option '--frob'"
    )


def test_a_refusal_without_words_says_so(stubs: Stubs) -> None:
    stubs.add("scontrol", "exit 1")
    with pytest.raises(SlurmRefused, match=r"exit code 1.*\n  \(no message\)"):
        programs.call("scontrol")


def test_killed_program_raises_answer_lost(stubs: Stubs) -> None:
    stubs.add("scontrol", "kill -TERM $$")
    with pytest.raises(AnswerLost, match=rf"signal {signal.SIGTERM:d} before .*: scontrol requeue 6"):
        programs.call("scontrol", "requeue", "6")


def test_unreachable_controller_is_unavailable_with_slurms_words(stubs: Stubs) -> None:
    stubs.fails("sinfo", NO_CONTROLLER)
    with pytest.raises(SlurmUnavailable, match="Unable to contact slurm controller") as failure:
        programs.call("sinfo")
    assert not isinstance(failure.value, AnswerLost)


def test_a_program_that_hangs_is_ended_with_its_children(stubs: Stubs, tmp_path: Path) -> None:
    """The child holds the pipes open: waiting for their end would hang as well."""
    child = tmp_path / "child"
    stubs.add("squeue", f"/bin/sleep 600 & echo $! > '{child}'; wait")
    with pytest.raises(SlurmUnavailable, match="no answer in 2 s from: squeue --me"):
        programs.call("squeue", "--me", timeout_s=2)
    wait_for_the_end_of(int(child.read_text()))


def test_a_users_display_preferences_do_not_reach_the_programs(
    stubs: Stubs, monkeypatch: pytest.MonkeyPatch
) -> None:
    preferences = {
        *("SQUEUE_FORMAT", "SINFO_PARTITION", "SACCT_FORMAT"),
        *("SCANCEL_INTERACTIVE", "SLURM_TIME_FORMAT", "SLURM_CLUSTERS"),
    }
    for name in preferences:
        monkeypatch.setenv(name, "x")
    monkeypatch.setenv("SLURM_CONF", "/etc/slurm/slurm.conf")
    stubs.add("squeue", "/usr/bin/env")
    names = {line.partition("=")[0] for line in programs.call("squeue").splitlines()}
    assert "SLURM_CONF" in names
    assert not names & preferences


def test_slurm_is_available_where_a_controller_is_up(stubs: Stubs) -> None:
    assert not programs.is_available()
    stubs.answers("scontrol", "Slurmctld(primary) at head is UP\n")
    assert programs.is_available()
    assert stubs.calls("scontrol") == [["ping"]]


@pytest.mark.parametrize(
    "body",
    [
        "echo 'Slurmctld(primary) at head is DOWN'",
        "echo 'fatal: no slurm.conf' >&2; exit 1",
        "/bin/sleep 600",
    ],
)
def test_slurm_is_not_available_where_no_controller_answers(stubs: Stubs, body: str) -> None:
    stubs.add("scontrol", body)
    assert not programs.is_available(timeout_s=0.5)


@pytest.mark.parametrize(
    "answer, job_id", [("1234\n", "1234"), ("1234;cluster\n", "1234"), ("Welcome, 5 jobs!\n77\n", "77")]
)
def test_a_submission_returns_the_jobs_id(stubs: Stubs, tmp_path: Path, answer: str, job_id: str) -> None:
    stubs.answers("sbatch", answer)
    script = tmp_path / "job.sh"
    assert programs.sbatch(script, tmp_path, dict(os.environ), options=["--hold"]) == job_id
    assert stubs.calls("sbatch") == [["--parsable", "--hold", str(script)]]


@pytest.mark.parametrize(
    "words",
    [
        "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation",
        "sbatch: error: Batch job submission failed: Unexpected message received",
        "sbatch: error: Slurm temporarily unable to accept job, sleeping and retrying",
    ],
)
def test_submission_without_an_answer_raises_answer_lost(stubs: Stubs, tmp_path: Path, words: str) -> None:
    stubs.fails("sbatch", words)
    with pytest.raises(AnswerLost, match=words.split(": ")[-1].split(",")[0]):
        programs.sbatch(tmp_path / "job.sh")


def test_submission_without_a_job_id_raises_answer_lost(stubs: Stubs, tmp_path: Path) -> None:
    stubs.answers("sbatch", "Welcome!\n")
    with pytest.raises(AnswerLost, match="Welcome!"):
        programs.sbatch(tmp_path / "job.sh")


def test_sbatch_test_only_says_when_a_job_would_start(stubs: Stubs) -> None:
    stubs.add("sbatch", "/bin/cat > /dev/null; echo 'sbatch: Job 7 to start at noon using 4 processors' >&2")
    assert programs.test_only("#!/bin/sh\n") == "Job 7 to start at noon using 4 processors"
    assert stubs.calls("sbatch") == [["--test-only"]]


def test_sbatch_test_only_runs_in_the_given_environment(stubs: Stubs) -> None:
    stubs.add("sbatch", "echo $SBATCH_PARTITION-$OTHER")
    assert programs.test_only("#!/bin/sh\n", {"PATH": str(stubs.folder), "OTHER": "x"}) == "-x"


def test_all_jobs_are_asked_for_in_one_call(stubs: Stubs) -> None:
    stubs.answers("squeue", (RECORDED / "squeue.txt").read_text())
    assert len(programs.jobs(ids=["114", "115_2", "121+0"])) == 13
    assert programs.jobs(names=["a-1", "b-2"], user="ada", qos="fast")
    first, second = stubs.calls("squeue")
    assert "--jobs=114,115_2,121+0" in first
    assert {"--name=a-1,b-2", "--user=ada", "--qos=fast"} <= set(second)
    assert {"--noheader", "--array", "--states=all"} <= set(first) & set(second)


def test_asking_for_no_jobs_calls_no_program(stubs: Stubs) -> None:
    assert programs.jobs() == []
    assert programs.accounting([]) == []


def test_a_cluster_without_accounting_has_no_records(stubs: Stubs) -> None:
    assert programs.accounting(["1"]) == []
    stubs.fails("sacct", "Slurm accounting storage is disabled\n")
    assert programs.accounting(["1"]) == []


@pytest.mark.parametrize(
    "ask, program, words",
    [
        (lambda: programs.sbatch(Path("job.sh")), "sbatch", "Invalid partition name specified"),
        (lambda: programs.jobs(user="ada"), "squeue", "Invalid user: ada"),
        (lambda: programs.requeue("16"), "scontrol", "Requested operation is presently disabled for job 16"),
        (lambda: programs.cancel("6"), "scancel", "Kill job error on job id 6: Access/permission denied"),
    ],
)
def test_what_slurm_refuses_raises_slurm_refused(
    stubs: Stubs, ask: Callable[[], object], program: str, words: str
) -> None:
    stubs.fails(program, f"{program}: error: {words}\n")
    with pytest.raises(SlurmRefused, match=words):
        ask()


def test_a_job_that_waits_already_counts_as_requeued(stubs: Stubs) -> None:
    stubs.fails("scontrol", "Job is pending execution for job 6\n")
    programs.requeue("6")
    assert stubs.calls("scontrol") == [["requeue", "6"]]


@pytest.mark.parametrize("words", ["Invalid job id specified", "Job/step already completing or completed"])
def test_an_ended_job_counts_as_cancelled_and_as_told(stubs: Stubs, words: str) -> None:
    stubs.fails("scancel", f"scancel: error: Kill job error on job id 12_3: {words}\n")
    programs.cancel("12_3")
    programs.signal_steps("12_3", "USR2")
    assert stubs.calls("scancel") == [["--", "12_3"], ["--signal=USR2", "--", "12_3"]]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Pauses pass at once, and are noted."""
    pauses: list[float] = []
    monkeypatch.setattr(programs, "_sleep", pauses.append)
    monkeypatch.setattr(programs, "_now", lambda: sum(pauses))
    return pauses


def test_patient_request_is_repeated_with_growing_pauses(clock: list[float]) -> None:
    failures = [SlurmUnavailable("busy"), AnswerLost("lost"), RunBusy("submitted by another")]
    ask = Mock(side_effect=[*failures, "done"])
    assert programs.patiently(ask, 30) == "done"
    assert clock == [0.5, 1, 2]


def test_patient_request_gives_up_after_its_time(clock: list[float]) -> None:
    ask = Mock(side_effect=SlurmUnavailable("busy"))
    with pytest.raises(SlurmUnavailable, match="busy"):
        programs.patiently(ask, 30)
    assert ask.call_count == len(clock) + 1
    assert 15 <= sum(clock) <= 30


def test_patient_request_does_not_repeat_a_refusal(clock: list[float]) -> None:
    ask = Mock(side_effect=SlurmRefused("no"))
    with pytest.raises(SlurmRefused):
        programs.patiently(ask, 30)
    assert (ask.call_count, clock) == (1, [])


@pytest.mark.parametrize(
    "output, flags",
    [
        ("long||||NoReserve,DenyOnLimit||||||||\n", frozenset({"NoReserve", "DenyOnLimit"})),
        ("long||||||||||||\n", frozenset()),
        ("", None),
        (None, None),
    ],
)
def test_flags_of_a_qos_are_read(stubs: Stubs, output: str | None, flags: frozenset[str] | None) -> None:
    """They are unknown without a program that asks the accounting."""
    if output is not None:
        stubs.answers("sacctmgr", output)
    assert programs.qos_flags("long") == flags
