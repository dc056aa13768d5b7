"""A run's folder with logs, as its attempts leave them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from toolkit.files import append_json_line
from toolkit.run.failure.records import failure_record, write_first
from toolkit.run.run_dir import RunDir


class Logged:
    """A run that has had some attempts, each a second after the one before."""

    def __init__(self, parent: Path, run_id: str = "tiny-1") -> None:
        self.run = RunDir(parent / run_id)
        self.run.logs.mkdir(parents=True)
        self.run.config.write_text("name: tiny\n")
        self._starts = 0

    def start(self, nonce: str, *texts: str, **facts: Any) -> None:
        """An attempt with a line in attempts.jsonl, whose ranks have written these texts."""
        self._starts += 1
        line = {"attempt": self._starts, "nonce": nonce, "time_start": 1000.0 + self._starts, **facts}
        append_json_line(self.run.attempts, line)
        self.write(nonce, *texts)

    def write(self, nonce: str, *texts: str, time: float | None = None) -> None:
        """The logs of an attempt's ranks."""
        for rank, text in enumerate(texts):
            path = self.run.log(nonce, rank)
            path.write_text(text, encoding="utf-8")
            os.utime(path, (time, time) if time else (1000.5 + self._starts, 1000.5 + self._starts))

    def hosts(self, nonce: str, *hosts: str) -> None:
        self.run.ranks(nonce).parent.mkdir(exist_ok=True)
        for rank, host in enumerate(hosts):
            append_json_line(self.run.ranks(nonce), {"rank": rank, "host": host})

    def fail(self, nonce: str, rank: int, message: str = "boom", **facts: Any) -> None:
        """failure.json, as the rank of an attempt writes it."""
        record = failure_record(
            nonce,
            "exception",
            message,
            rank=rank,
            host="w1",
            phase="forward",
            step=7,
            trace="Traceback: boom\n",
        )
        self.run.ranks(nonce).parent.mkdir(exist_ok=True)
        assert write_first(self.run, {**record, **facts})
