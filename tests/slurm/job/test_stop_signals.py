"""Stop signals of Slurm and of srun become reasons to stop."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from slurm.job.stop_signals import JobStop

#: Slurm's own, and the one that users of other libraries send by scancel.
WARNINGS = (signal.SIGUSR2, signal.SIGUSR1)


@pytest.mark.usefixtures("handlers")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, *WARNINGS])
def test_first_signal_becomes_the_reason_to_stop(number: signal.Signals) -> None:
    stop = JobStop().install()
    os.kill(os.getpid(), signal.SIGCONT)  # Slurm wakes the tasks before each signal
    assert stop.reason_to_stop() is None
    os.kill(os.getpid(), number)
    assert stop.reason_to_stop() == number.name
    os.kill(os.getpid(), signal.SIGTERM)
    assert stop.reason_to_stop() == number.name, "the first reason stands"
    assert [name for name, _ in stop.signals] == ["SIGCONT", number.name, "SIGTERM"]


def test_second_ctrl_c_that_srun_passes_on_ends_the_rank_at_once() -> None:
    code = (
        "import signal\nfrom slurm.job.stop_signals import JobStop\n"
        "stop = JobStop(is_watched=True).install()\nsignal.raise_signal(signal.SIGINT)\n"
        "print(stop.reason_to_stop(), flush=True)\nsignal.raise_signal(signal.SIGINT)\nprint('goes on')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (130, "SIGINT\n"), done.stderr


@pytest.mark.usefixtures("handlers")
@pytest.mark.parametrize("number", WARNINGS)
def test_other_ranks_ignore_the_warning_but_stop_on_sigterm(number: signal.Signals) -> None:
    stop = JobStop(is_watched=True).install()
    os.kill(os.getpid(), number)
    assert stop.reason_to_stop() is None
    os.kill(os.getpid(), signal.SIGTERM)
    assert stop.reason_to_stop() == "SIGTERM"
