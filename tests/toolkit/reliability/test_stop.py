"""A signal sets a flag; only a second Ctrl-C ends the process."""

from __future__ import annotations

import multiprocessing
import signal
import subprocess
import sys
from multiprocessing.connection import Connection

import pytest

from tests.support.patience import PATIENCE_S
from toolkit.reliability.stop import StopFlag, children_end_by_sigterm, stop_signals

# Says what the flag holds after each line that it reads.
PROGRAM = """
import signal, sys
from toolkit.reliability.stop import StopFlag
flag = StopFlag().install(signal.SIGTERM, signal.SIGINT)
print(flag.reason_to_stop(), flush=True)
for line in sys.stdin:
    print(flag.reason_to_stop(), flush=True)
"""


class Flagged:
    """A process with a StopFlag."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self.answer() == "None"

    def answer(self) -> str:
        return self.process.stdout.readline().strip()

    def reason_after(self, *signals: signal.Signals) -> str:
        """A signal that was sent has been handled before the next line is read."""
        reason = ""
        for number in signals:
            self.process.send_signal(number)
            self.process.stdin.write("\n")
            self.process.stdin.flush()
            reason = self.answer()
        return reason


@pytest.fixture
def flagged() -> Flagged:
    return Flagged()


@pytest.mark.parametrize(
    "signals", [[signal.SIGTERM], [signal.SIGINT], [signal.SIGTERM, signal.SIGTERM, signal.SIGINT]]
)
def test_first_signal_is_the_reason_and_the_process_continues(
    flagged: Flagged, signals: list[signal.Signals]
) -> None:
    assert flagged.reason_after(*signals) == signals[0].name
    flagged.process.communicate()
    assert flagged.process.returncode == 0


@pytest.mark.parametrize("before", [[], [signal.SIGTERM]])
def test_second_interrupt_ends_the_process_at_once(flagged: Flagged, before: list[signal.Signals]) -> None:
    assert flagged.reason_after(*before, signal.SIGINT) == (before or [signal.SIGINT])[0].name
    flagged.process.send_signal(signal.SIGINT)
    assert flagged.process.wait(60) == 130


def test_the_warning_of_a_scheduler_stops_a_process_outside_of_slurm_too() -> None:
    assert {signal.SIGTERM, signal.SIGUSR2, signal.SIGINT} <= set(stop_signals())


def test_signal_blocked_during_the_start_reaches_the_flag() -> None:
    """They may have come before the rank could handle them."""
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
    try:
        process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        process.send_signal(signal.SIGTERM)
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])
    output, _ = process.communicate("\n")
    assert output.split()[-1] == "SIGTERM"
    assert process.returncode == 0


def wait_to_be_ended(ready: Connection) -> None:
    """As a worker of a pool, which is ended by SIGTERM."""
    ready.send(None)
    signal.pause()


def test_a_forked_worker_is_ended_by_sigterm_although_its_parent_catches_it() -> None:
    before = signal.getsignal(signal.SIGTERM)
    StopFlag().install(signal.SIGTERM)
    ours, theirs = multiprocessing.Pipe()
    child = multiprocessing.get_context("fork").Process(target=wait_to_be_ended, args=(theirs,))
    with children_end_by_sigterm():
        child.start()
    try:
        ours.recv()
        child.terminate()
        child.join(PATIENCE_S)
        assert child.exitcode == -signal.SIGTERM
    finally:
        child.kill()
        signal.signal(signal.SIGTERM, before)
