"""Names of checkpoints on the disk: hidden ones, links, and how one is taken away. Without torch."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from toolkit.files import crc32, read_json
from toolkit.rundir import MANIFEST, PROGRESS, RunDir

#: Called with the name of each point at which the tests' faults may strike.
Point = Callable[[str], None]


def hidden(target: Path, nonce: str, kind: str) -> Path:
    """A name of this start's own, so that no other one writes into the same folder."""
    return target.with_name(f".{target.name}.{nonce or os.getpid()}.{kind}")


def point(path: Path, target: str) -> None:
    """Make a link point elsewhere, in one step."""
    temporary = path.with_name(f".{path.name}.tmp")
    temporary.unlink(missing_ok=True)
    temporary.symlink_to(target)
    os.replace(temporary, path)


def remove(folder: Path, nonce: str, at: Point = lambda point: None) -> None:
    """Take a checkpoint away under another name first, so that half of one is never seen."""
    trash = hidden(folder, nonce, "trash")
    shutil.rmtree(trash, ignore_errors=True)
    os.rename(folder, trash)
    at("delete")
    (trash / MANIFEST).unlink(missing_ok=True)
    shutil.rmtree(trash)


def is_whole(folder: Path) -> bool:
    """Whether every file that a checkpoint's manifest names is there with its size and checksum."""
    try:
        files = read_json(folder / MANIFEST)["files"]
        return all(_is_as_said(folder / name, facts) for name, facts in files.items())
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return False


def _is_as_said(file: Path, facts: dict[str, Any]) -> bool:
    return bool(file.stat().st_size == facts["bytes"] and crc32(file) == facts["crc32"])


def best_named_by(folder: Path) -> int | None:
    """The step of the best checkpoint, as one names it; None where it names none, or cannot be read."""
    try:
        step = read_json(folder / PROGRESS)["progress"].get("best_step")
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None
    return step if isinstance(step, int) else None


def mend_last(run: RunDir) -> None:
    """Let the link to the newest checkpoint point at the newest that is left; without one it goes."""
    if not run.last.is_symlink() or run.last.exists():
        return
    steps = run.checkpoint_steps()
    if steps:
        point(run.last, run.checkpoint(steps[-1]).name)
    else:
        run.last.unlink()
