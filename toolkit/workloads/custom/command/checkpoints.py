"""The newest save of a command: the newest entry of its checkpoint folder."""

from __future__ import annotations

from pathlib import Path

from toolkit.run.run_dir import RunDir


def latest(run: RunDir) -> Path | None:
    """The newest file or folder that the command has saved; None where it has saved nothing.

    Hidden ones and links are passed over: a save can be written under a hidden name, and then renamed.
    """
    try:
        entries = [each for each in run.checkpoints.iterdir() if not each.name.startswith(".")]
    except OSError:
        return None
    return max((each for each in entries if not each.is_symlink()), key=_age, default=None)


def _age(entry: Path) -> tuple[float, str]:
    try:
        return entry.stat().st_mtime, entry.name
    except OSError:
        # It has just been removed.
        return 0.0, entry.name


def mark(run: RunDir) -> object:
    """A value that changes with each save."""
    newest = latest(run)
    return None if newest is None else (newest.name, _age(newest))
