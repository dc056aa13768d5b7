"""Why was the job stopped, and does it go back into the queue?"""

from __future__ import annotations

import signal
from collections.abc import Mapping

from slurm import controller
from slurm.plan import WARNING_SIGNAL
from toolkit.errors import SchedulerError
from toolkit.events import note_event
from toolkit.rundir import RunDir
from toolkit.stop import StopFlag

_NO_TIME = ("", "None", "N/A", "Unknown")


class JobStop(StopFlag):
    """Asked to stop by Slurm: SIGTERM, or the warning before the time limit."""

    def install(self, *signals: signal.Signals) -> JobStop:
        wanted = signals or (signal.SIGTERM, signal.Signals[f"SIG{WARNING_SIGNAL}"])
        super().install(*wanted)
        # Slurm wakes the tasks before each signal; submitit would log every one.
        signal.signal(signal.SIGCONT, lambda number, frame: None)
        return self


def hand_over(run: RunDir, environ: Mapping[str, str], stop: StopFlag) -> None:
    """After the save: ask Slurm why the job was stopped, and requeue it where it should go on.

    Called by one rank. A preempted job and one near its time limit go back; a cancelled one does not.
    """
    job = job_target(environ)
    try:
        facts = controller.show_job(job)
        why = why_stopped(facts, stop.reason())
        if why != "cancelled":
            controller.requeue(job)
    except SchedulerError as error:
        note_event(run, "requeue_failed", job_id=job, reason=str(error))
        raise
    note_event(run, "cancelled" if why == "cancelled" else "requeue", job_id=job, why=why)


def why_stopped(job: Mapping[str, str], reason: str | None) -> str:
    """preempted, time_limit or cancelled, from what `scontrol show job` says and the signal seen."""
    if job.get("PreemptTime", "") not in _NO_TIME:
        return "preempted"
    if reason == f"SIG{WARNING_SIGNAL}":
        return "time_limit"
    return "cancelled"


def job_target(environ: Mapping[str, str]) -> str:
    """The id that `scontrol requeue` wants: of an array, this task's own, never that of its siblings."""
    if "SLURM_ARRAY_JOB_ID" in environ:
        return f"{environ['SLURM_ARRAY_JOB_ID']}_{environ['SLURM_ARRAY_TASK_ID']}"
    return environ["SLURM_JOB_ID"]
