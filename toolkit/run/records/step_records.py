"""Step records: the samples and the loss of every step, chained by a hash.

receipts.jsonl, ascending by step:

    {"step": 37, "samples": "5a0c1e9b", "loss": 5.545177459716797}
    {"step": 40, "chain": "0f…", "weights": "9d3b11c7"}               after a save

samples is the CRC-32 of the samples' indices in the training split, in the order of the step; loss is the
summed loss, which is exact as JSON. The chain depends only on the steps, not on where a run was stopped.
"""

from __future__ import annotations

import hashlib
import json
import mmap
import os
import struct
import time
import zlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolkit.errors import UserError
from toolkit.files import append_whole, parsed, read_json, read_object, regular
from toolkit.run.run_dir import MANIFEST, WEIGHTS, RunDir

if TYPE_CHECKING:
    # Readers, such as `stk diff`, do not need it.
    import numpy as np

_FLUSH_EVERY_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRecord:
    """One step: the checksum of its samples (8 hex digits) and its summed loss."""

    step: int
    samples: str
    loss: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SaveRecord:
    """One checkpoint: the chain up to its step and the checksum of its weights; empty if not known."""

    step: int
    chain: str
    weights: str


def samples_crc32(samples: np.ndarray) -> int:
    """CRC-32 of sample indices, as 64-bit little-endian integers."""
    return zlib.crc32(samples.astype("<i8", order="C", copy=False).data)


def extend(chain: str, step: int, samples: int, loss: float) -> str:
    """Return the chain with one more step: 32 hexadecimal digits of BLAKE2b over the chain and the step."""
    packed = bytes.fromhex(chain) + struct.pack("<qId", step, samples, loss)
    return hashlib.blake2b(packed, digest_size=16).hexdigest()


class StepRecords:
    """Writes receipts.jsonl, on rank 0 only.

    Lines are kept in memory for some seconds, or until a flush. A full disk does not end the run: the next
    flush tries again.
    """

    def __init__(self, run: RunDir, is_main: bool) -> None:
        self._run = run
        self._is_main = is_main
        self._waiting: list[str] = []
        self._flushed_s = time.monotonic()
        self._saved = 0
        # The step from which this attempt starts, until later lines have been dropped.
        self._begun: int | None = None

    def start(self, step: int) -> None:
        """Drop the lines that an earlier attempt wrote after the step from which this one starts."""
        if not self._is_main:
            return
        self._waiting.clear()
        self._begun = step
        with suppress(OSError):
            self._drop_later()

    def _drop_later(self) -> None:
        if self._begun is not None:
            _cut(self._run.step_records, self._begun)
            self._saved = max((save.step for save in _recorded_saves(self._run)), default=0)
            self._begun = None

    def add(self, step: int, chain: str, samples: np.ndarray, loss: float) -> str:
        """Add a step, and return the chain with it."""
        if not self._is_main:
            return chain
        checksum = samples_crc32(samples)
        self._waiting.append(f'{{"step": {step}, "samples": "{checksum:08x}", "loss": {loss!r}}}\n')
        if time.monotonic() - self._flushed_s > _FLUSH_EVERY_S:
            self.flush()
        return extend(chain, step, checksum, loss)

    def flush(self) -> None:
        """Write the pending steps and the checkpoints that were saved since the last flush."""
        if not self._is_main:
            return
        self._flushed_s = time.monotonic()
        with suppress(OSError):
            self._drop_later()
            # No save is missed: each checkpoint is kept until after the next one.
            steps = [step for step in self._run.checkpoint_steps() if step > self._saved]
            saves = [save for step in steps if (save := _read_save(self._run, step)) is not None]
            lines = [*self._waiting, *(json.dumps(asdict(save)) + "\n" for save in saves)]
            _append(self._run.step_records, "".join(lines).encode())
            self._waiting.clear()
            self._saved = max([self._saved, *(save.step for save in saves)])

    def close(self) -> None:
        """Flush; lines that cannot be written now are lost."""
        self.flush()


def read_step_records(run: RunDir) -> Iterator[StepRecord]:
    """The steps of a run, ascending; damaged lines are skipped."""
    for line in _lines(run, '"samples"'):
        try:
            record = StepRecord(step=line["step"], samples=line["samples"], loss=float(line["loss"]))
        except (KeyError, OverflowError, TypeError, ValueError):
            continue
        if isinstance(record.step, int) and isinstance(record.samples, str):
            yield record


def last_step(run: RunDir) -> int:
    """The newest step of a run, according to its files."""
    done = max((record.step for record in read_step_records(run)), default=0)
    steps = (read_object(path).get("step") for path in (run.progress, run.failure))
    return max([done, *run.checkpoint_steps(), *(step for step in steps if isinstance(step, int))])


def check_step(run: RunDir, step: int) -> None:
    """Raise UserError for a step (counted from 1) that the run has not reached. The next one is allowed."""
    last = last_step(run)
    end = last if run.result.exists() else last + 1
    if not 1 <= step <= end:
        until = f"finished after step {last}" if run.result.exists() else f"has done {last} steps so far"
        raise UserError(f"{run.run_id} has no step {step}: it {until}. Steps count from 1")


def read_saves(run: RunDir) -> Iterator[SaveRecord]:
    """All saves of a run: recorded ones, and checkpoints that have no line yet."""
    recorded = {save.step for save in _recorded_saves(run)}
    yield from _recorded_saves(run)
    for step in run.checkpoint_steps():
        if step not in recorded and (save := _read_save(run, step)) is not None:
            yield save


def _recorded_saves(run: RunDir) -> Iterator[SaveRecord]:
    for line in _lines(run, '"weights"'):
        with suppress(KeyError, OverflowError, TypeError, ValueError):
            yield SaveRecord(step=int(line["step"]), chain=str(line["chain"]), weights=str(line["weights"]))


def _lines(run: RunDir, key: str) -> Iterator[Any]:
    """The complete lines with a key. Other lines are not parsed: there may be millions."""
    if not run.step_records.exists():
        return
    with open(run.step_records, encoding="utf-8", errors="replace", opener=regular) as stream:
        for line in stream:
            if key in line and line.endswith("\n"):
                yield parsed(line)


def _read_save(run: RunDir, step: int) -> SaveRecord | None:
    """The save from a checkpoint's manifest; None if it cannot be read, which the loader reports."""
    try:
        manifest = read_json(run.checkpoint(step) / MANIFEST)
        weights = manifest["files"][WEIGHTS]["crc32"]
        return SaveRecord(step=step, chain=str(manifest.get("chain", "")), weights=f"{int(weights):08x}")
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None


def _append(path: Path, data: bytes) -> None:
    """Append all data or nothing. Raises OSError."""
    if not data:
        return
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        append_whole(descriptor, data)
    finally:
        os.close(descriptor)


def _cut(path: Path, step: int) -> None:
    """Cut the file after this step; an incomplete last line is removed as well."""
    if not path.exists() or path.stat().st_size == 0:
        return
    # Mapped, because the file of a long run may be larger than memory.
    with open(path, "rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data:
        end = size = len(data)
        while end > 0:
            start = data.rfind(b"\n", 0, end - 1) + 1
            if _is_step_up_to(data[start:end], step):
                break
            end = start
    if end < size:
        os.truncate(path, end)


def _is_step_up_to(line: bytes, step: int) -> bool:
    """Whether a line is complete and describes a step no later than `step`.

    Lines of saves do not count: they may follow later steps.
    """
    try:
        record = json.loads(line)
        return line.endswith(b"\n") and "samples" in record and record["step"] <= step
    except (RecursionError, ValueError, TypeError, KeyError):
        return False
