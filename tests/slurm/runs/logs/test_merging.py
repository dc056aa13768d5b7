"""Lines of several ranks by time; what has no time stays with the line before it."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from slurm.runs.logs.showing import Clock, by_time, merged
from slurm.runs.logs.sources import Source


def timed(second: int, text: str) -> bytes:
    return f"2026-01-01 00:00:{second:02d},000 INFO {text}\n".encode()


def test_a_stack_trace_stays_with_its_error() -> None:
    trace = [b"Traceback\n", b"  File x\n", b"ValueError\n"]
    logs = [[timed(2, "failed"), *trace], [timed(1, "b1"), timed(2, "b2"), timed(3, "b3")]]
    lines = [line for _, line in merged(logs, [Clock(), Clock()])]
    begin = lines.index(timed(2, "failed"))
    assert lines[begin + 1 : begin + 4] == trace


def test_last_lines_of_all_logs_keep_a_stack_trace(tmp_path: Path) -> None:
    trace = b"Traceback\n  File x\nValueError\n"
    sources = []
    for rank, text in enumerate([timed(3, "failed") + trace, b"".join(timed(n, "b") for n in (1, 2, 2))]):
        path = tmp_path / f"{rank}.log"
        path.write_bytes(text)
        sources.append(Source(path=path, group="1", title="attempt 1", label=f"rank {rank}"))
    shown = [line.partition(" | ")[2] for line in by_time(sources, 3)]
    assert shown == trace.decode().splitlines()


@given(st.lists(st.lists(st.tuples(st.booleans(), st.integers(0, 59))), max_size=3))
def test_nothing_is_lost_and_each_log_keeps_its_order(logs: list[list[tuple[bool, int]]]) -> None:
    """Also where a clock was set back."""
    written = [
        [
            timed(second, f"{n}") if is_timed else f"raw {n}\n".encode()
            for n, (is_timed, second) in enumerate(log)
        ]
        for log in logs
    ]
    found = list(merged(written, [Clock() for _ in written]))
    for number, lines in enumerate(written):
        assert [line for which, line in found if which == number] == lines
    assert len(found) == sum(map(len, written))
