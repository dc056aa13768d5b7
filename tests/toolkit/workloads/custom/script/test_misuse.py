"""Invalid calls of the run are reported with file, line and a correction."""

from __future__ import annotations

import runpy
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from toolkit.errors import UserError
from toolkit.workloads.custom.script.current_run import current_run


@pytest.fixture(autouse=True)
def here(empty_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STK_EXPERIMENT_DIR", str(empty_folder / "experiments"))


@pytest.fixture(autouse=True)
def signals() -> Iterator[None]:
    """Restores the signals that a script catches from its first call on."""
    numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGUSR2, signal.SIGHUP)
    before = {number: signal.getsignal(number) for number in numbers}
    current_run.cache_clear()
    yield
    current_run.cache_clear()
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize(
    "call, right",
    [
        ("run.log(step=-1, loss=1.0)", "run.log(step=10, total=100, loss=0.5)"),
        ("run.log(step='a', loss=1.0)", "run.log(step=10, total=100, loss=0.5)"),
        ("run.log(step=1, loss='high')", "run.log(step=10, total=100, loss=0.5)"),
        ("run.log(step=1, loss=10**400)", "run.log(step=10, total=100, loss=0.5)"),
        ("run.log(step=1, epoch=10**400)", "run.log(step=10, total=100, loss=0.5)"),
        ("run.log(step=1.5)", "run.log(step="),
        ("run.log(step=1, total='ten')", "run.log(total="),
        ("run.log(step=1, time=3)", "run.log(time="),
        ("run.log(step=1, lr=1, split='')", "run.log(step=10, total=100, loss=0.5)"),
        ("with run.checkpoint(-1): pass", "with run.checkpoint(10) as folder: torch.save("),
        ("with run.checkpoint(1): pass", "with run.checkpoint(10) as folder: torch.save("),
        *(
            (f"with run.checkpoint(1, keep={keep}): pass", "with run.checkpoint(10) as folder: torch.save(")
            for keep in ("0", "None", "1.5", "float('inf')", "'2'")
        ),
        ("run.should_stop(every=0)", "run.should_stop(every=10)"),
        ("run.log(loss=1.0)", "run.log(step=10, total=100, loss=0.5)"),
        ("run.log(1, loss=1.0)", "run.log(step=10, total=100, loss=0.5)"),
        ("with run.checkpoint(): pass", "with run.checkpoint(10) as folder: torch.save("),
        ("with run.checkpoint(step=1, last=True): pass", "with run.checkpoint(10) as folder: torch.save("),
        ("run.should_stop(10)", "run.should_stop(every=10)"),
        ("run.latest_checkpoint(1)", "folder = run.latest_checkpoint()"),
        ("run.leave(75)", "run.leave()"),
    ],
)
def test_invalid_call_of_the_run_is_reported_with_its_line(call: str, right: str) -> None:
    Path("script.py").write_text(f"import stk\n\nrun = stk.current_run()\n{call}\n")
    with pytest.raises(UserError, match=r"script\.py:4: run\.") as caught:
        runpy.run_path("script.py")
    assert right in str(caught.value)


def test_type_error_in_a_checkpoint_block_of_the_script_is_not_replaced() -> None:
    Path("script.py").write_text("import stk\n\nwith stk.current_run().checkpoint(1):\n    len(3)\n")
    with pytest.raises(TypeError, match=r"object of type 'int' has no len"):
        runpy.run_path("script.py")
