"""Commands of the cluster, and the switch for preemption with the job's own signal."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

#: States of a job that does not run again by itself.
ENDED = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "PREEMPTED", "OUT_OF_MEMORY")


def command(*words: str, env: Mapping[str, str] | None = None) -> str:
    """Run a command and return its output. Raises RuntimeError with its error output."""
    result = subprocess.run(words, env={**os.environ, **(env or {})}, capture_output=True, text=True)
    if result.returncode != 0:
        raise RuntimeError(f"{' '.join(words)}: {result.stderr.strip() or result.stdout.strip()}")
    return result.stdout.strip()


def job(job_id: str) -> dict[str, str]:
    """Return scontrol's record of a job."""
    words = command("scontrol", "show", "job", "--oneliner", job_id).split()
    return dict(word.split("=", 1) for word in words if "=" in word)


def wait_for_the_end(job_id: str, timeout_s: float, look: Callable[[], None]) -> str:
    """Return the state that the job ended in, or `hangs` (and cancel it) after `timeout_s`.

    Calls `look` every second.
    A job that is being requeued shows an ended state for a moment: a state counts after 4 seconds.
    """
    deadline, since = time.monotonic() + timeout_s, 0.0
    while time.monotonic() < deadline:
        look()
        state = job(job_id)["JobState"]
        if state not in ENDED:
            since = 0.0
        elif not since:
            since = time.monotonic()
        elif time.monotonic() - since > 4:
            return state
        time.sleep(1)
    command("scancel", "--signal=KILL", "--full", job_id)
    command("scancel", job_id)
    return "hangs"


def preempt(job_id: str) -> None:
    """Preempt the job with a short urgent job on its host."""
    options = ("--exclusive", "--time=1", "--output=/dev/null", "--wrap=true")
    command("sbatch", "--partition=urgent", f"--nodelist={job(job_id)['NodeList']}", *options)


@contextmanager
def user_signal_preemption() -> Iterator[None]:
    """While open, let the cluster announce a preemption with the job's own --signal, not with SIGTERM."""
    file = Path(os.environ["SLURM_CONF"])
    before = file.read_text()
    file.write_text(before + "SlurmctldParameters=preempt_send_user_signal\n")
    command("scontrol", "reconfigure")
    try:
        yield
    finally:
        file.write_text(before)
        command("scontrol", "reconfigure")
