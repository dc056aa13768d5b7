"""stk drill on a simulated cluster: what it asks Slurm for, and what it concludes from the folder."""

from __future__ import annotations

import signal
import time
from argparse import Namespace
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from slurm.client import programs
from slurm.client.parse import parse_partitions
from slurm.commands.setup import drill as command
from slurm.config.resources import Resources
from slurm.drill import cluster
from slurm.drill.cluster import ClusterDrill
from slurm.drill.task import STRIDE, drill_experiment
from slurm.status.rows import RunStatus
from slurm.status.submissions import Submission
from slurm.submission.submit import Submitted
from toolkit.config.schema import Experiment
from toolkit.errors import RunFailed, SlurmRefused
from toolkit.files import append_json_line
from toolkit.reliability.fault_injection import VARIABLE, parse
from toolkit.run.attempts.records import explain_last, read_attempts
from toolkit.run.events import note_event
from toolkit.run.run_dir import RunDir

PARTITIONS = """\
PartitionName=low Default=NO GraceTime=10 Nodes=n[1-4] PriorityTier=1 PreemptMode=REQUEUE State=UP
PartitionName=high Default=YES GraceTime=0 Nodes=n[1-4] PriorityTier=5 PreemptMode=OFF State=UP
"""


@dataclass
class Played:
    """A cluster on which each attempt does two saves and some more steps, and comes back at once.

    spoils       the attempt, counted from 1, from which on other bytes are saved
    dies_of      the signal after which the job does not come back
    """

    folder: Path
    spoils: int = 1000
    dies_of: str = ""
    asked: list[tuple[str, ...]] = field(default_factory=list)
    resources: list[Resources] = field(default_factory=list)
    state: str = "running"

    def submit(self, experiment: Experiment, wanted: RunDir, where: str) -> Submitted:
        self.resources.append(experiment.resources)
        parent = wanted.path.parent
        run = RunDir(parent / "drill-1")
        run.checkpoints.mkdir(parents=True, exist_ok=True)
        self.state = "running"
        self._begin(run)
        return Submitted(
            run, Submission(cluster=where, job_id=parent.name, host="login", name="drill", time=time.time())
        )

    def _begin(self, run: RunDir) -> None:
        first = max(run.checkpoint_steps(), default=0)
        done = first + 2 * STRIDE + 2 if run.path.parent.name == "disturbed" else 200
        number = len(read_attempts(run)) + 1
        line = {"attempt": number, "time_start": time.time(), "world_size": 2, "hosts": ["n1"]}
        times = {"first_step_s": 3.0, "first_step_after_start_s": 1.0}
        append_json_line(run.attempts, {**line, **times, "first_step": first})
        for step in range(first + 1, done + 1):
            note_event(run, "fault", step=step)
            if step % STRIDE == 0:
                self._save(run, step, number)

    def _save(self, run: RunDir, step: int, number: int) -> None:
        run.checkpoint(step).mkdir(exist_ok=True)
        text = f"{step} spoilt" if number >= self.spoils else str(step)
        (run.checkpoint(step) / "model.safetensors").write_text(text)

    def stop(self, *request: str) -> None:
        """What any request but a kill comes to: save, leave, come back."""
        self.asked.append(request)
        run = RunDir(self.folder / "disturbed" / "drill-1")
        if request[-1] == self.dies_of:
            self.state = "failed"
            return
        if request[-1] != "ALRM":
            done = read_attempts(run)[-1].first_step + 2 * STRIDE + 2
            self._save(run, done, len(read_attempts(run)))
            note_event(run, "signals", rank=0, signals=[["SIGTERM", time.time()]])
            explain_last(run, "requested", last_step=done, time_end=time.time())
        self._begin(run)

    def status(self, runs: list[RunDir]) -> list[RunStatus]:
        (run,) = runs
        if run.path.parent.name == "disturbed" and len(self.asked) == 4 and self.state == "running":
            # Nothing is asked any more: time runs out.
            self.stop("out of time")
        live, place = self.state in ("running", "requeued"), str(run.path)
        return [RunStatus(run_id="drill-1", run_dir=place, job_id="1", state=self.state, is_live=live)]

    def cancel(self, job_id: str) -> None:
        self.asked.append(("cancel", job_id))
        self.state = "cancelled"


@pytest.fixture
def played(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Played:
    found = Played(tmp_path)
    job = Submission(cluster="slurm", job_id="17", host="login", name="drill", time=0.0)
    monkeypatch.setattr(cluster, "_POLL_S", 0.0)
    monkeypatch.setattr(cluster, "_ASK_SLURM_S", 0.0)
    monkeypatch.setattr(cluster, "submit", found.submit)
    monkeypatch.setattr(cluster, "status", found.status)
    monkeypatch.setattr(cluster, "last_submission", lambda run: job)
    monkeypatch.setattr(programs, "partitions", lambda: parse_partitions(PARTITIONS))
    monkeypatch.setattr(programs, "config", lambda: {"PreemptType": "preempt/partition_prio"})
    monkeypatch.setattr(programs, "signal_steps", lambda job, name: found.stop("signal", job, name))
    monkeypatch.setattr(programs, "requeue", lambda job: found.stop("requeue", job))
    monkeypatch.setattr(programs, "cancel", found.cancel)

    def sbatch(script: Path, cwd: Path, *, options: tuple[str, ...]) -> str:
        found.stop("sbatch", *options)
        return "18"

    monkeypatch.setattr(programs, "sbatch", sbatch)
    return found


def drill(played: Played, *overrides: str) -> ClusterDrill:
    experiment = drill_experiment(None, overrides, played.folder, 8)
    return ClusterDrill(experiment, played.folder, lambda what: None)


def test_every_interruption_is_caused_and_compared(played: Played) -> None:
    *_, rows = drill(played).run()
    assert [(row.what, row.lost_steps, row.same_bytes, row.fault) for row in rows] == [
        ("asked to stop (scancel --signal=TERM)", 0, True, ""),
        ("requeued (scontrol requeue)", 0, True, ""),
        ("all ranks killed (SIGALRM)", 2, True, ""),
        ("preempted, GraceTime 10 s", 0, True, ""),
        ("out of time (3 min)", 0, True, ""),
    ]
    assert all(row.is_good for row in rows)
    assert [row.signals for row in rows] == [("TERM",), ("TERM",), (), ("TERM",), ("TERM",)]
    assert {row.back_s for row in rows} == {3.0}
    assert {row.processes for row in rows} == {"2 → 2"}


def test_drill_makes_only_requests_of_an_ordinary_user(played: Played) -> None:
    *_, _ = drill(played).run()
    urgent = played.asked[3]
    found = [request[:3] for request in played.asked[:3]]
    assert found == [("signal", "17", "TERM"), ("requeue", "17"), ("signal", "17", "ALRM")]
    assert urgent[0] == "sbatch"
    assert {"--partition=high", "--nodelist=n1", "--time=1"} <= set(urgent)
    assert ("cancel", "18") in played.asked, "the job that preempted"


def test_disturbed_job_is_slow_and_has_a_shorter_limit_than_the_undisturbed_one(played: Played) -> None:
    *_, _ = drill(played, "resources.environment.MINE=1", "resources.sbatch.exclusive=user").run()
    disturbed, undisturbed = played.resources
    assert (disturbed.time, undisturbed.time) == ("3", "30")
    # Nobody else's job may be preempted in its place.
    assert (disturbed.partition, disturbed.exclusive, disturbed.sbatch) == ("low", True, {})
    assert undisturbed.partition == "low"
    (pace,) = parse(disturbed.environment[VARIABLE])
    assert (pace.action, pace.amount, pace.rank) == ("slow", 1.0, 0)
    assert disturbed.environment["MINE"] == undisturbed.environment["MINE"] == "1"
    assert all(fault.action == "slow" for fault in parse(undisturbed.environment[VARIABLE]))


def test_attempt_that_saves_other_bytes_is_detected(played: Played) -> None:
    played.spoils = 3
    *_, rows = drill(played).run()
    assert [row.same_bytes for row in rows] == [True, False, False, False, False]


def test_job_that_is_not_restarted_is_reported_and_resumed(played: Played) -> None:
    played.dies_of = "ALRM"
    *_, rows = drill(played).run()
    assert "was not restarted" in rows[2].fault
    assert [row.fault for row in rows if row is not rows[2]] == [""] * 4


def test_refused_request_is_reported_as_not_tried(played: Played, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(job: str) -> None:
        played.asked.append(("refused", job))
        raise SlurmRefused("Slurm refused: requeueing is disabled")

    monkeypatch.setattr(programs, "requeue", refuse)
    drilled = drill(played)
    *_, rows = drilled.run()
    assert "requeued (scontrol requeue)" not in [row.what for row in rows]
    assert any("requeueing is disabled" in reason for reason in drilled.not_tried)
    assert all(row.is_good for row in rows)


def test_jobs_are_cancelled_after_an_error(played: Played, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(job: str) -> None:
        raise RunFailed("something else")

    monkeypatch.setattr(programs, "requeue", fail)
    with pytest.raises(RunFailed, match="something else"):
        list(drill(played).run())
    assert ("cancel", "17") in played.asked


@pytest.fixture(params=[signal.SIGTERM, signal.SIGHUP], ids=["SIGTERM", "SIGHUP"])
def harmless(request: pytest.FixtureRequest) -> Iterator[signal.Signals]:
    """A signal that does not end the tests."""
    numbers = (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR2)
    before = {each: signal.signal(each, lambda number, frame: None) for each in numbers}
    yield request.param
    for number, handler in before.items():
        signal.signal(number, handler)


def test_jobs_are_cancelled_after_a_signal_although_it_is_repeated_and_the_terminal_lost(
    played: Played, monkeypatch: pytest.MonkeyPatch, harmless: signal.Signals
) -> None:
    def end(job: str) -> None:
        played.state = "requeued"
        signal.raise_signal(harmless)

    def say(what: str) -> None:
        if played.state == "requeued":
            raise OSError("Input/output error")

    def cancel(job_id: str) -> None:
        signal.raise_signal(harmless)
        played.cancel(job_id)

    monkeypatch.setenv("STK_EXPERIMENT_DIR", str(played.folder))
    monkeypatch.setattr(programs, "requeue", end)
    monkeypatch.setattr(programs, "cancel", cancel)
    monkeypatch.setattr(command, "choose_cluster", lambda wanted: wanted)
    monkeypatch.setattr(command, "ClusterDrill", lambda made, *_: ClusterDrill(made, played.folder, say))
    asked = Namespace(config=None, overrides=[], cluster="slurm", json=True, keep=True)
    with pytest.raises(KeyboardInterrupt):
        command.run(asked)
    assert ("cancel", "17") in played.asked


def test_preemption_is_left_out_without_a_higher_partition(
    played: Played, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = parse_partitions(PARTITIONS.replace("PriorityTier=5", "PriorityTier=1"))
    monkeypatch.setattr(programs, "partitions", lambda: found)
    drilled = drill(played)
    assert any("a real preemption" in reason for reason in drilled.not_tried)
    # One request fewer until time runs out.
    played.asked.append(("nothing",))
    *_, rows = drilled.run()
    assert len(rows) == 4
    assert not played.resources[0].exclusive
