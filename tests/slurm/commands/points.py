"""A working folder in which a line through points can be learnt."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.slurm.support.user import User, user_in

_EXPERIMENT = """\
name: line
task: {kind: toy_points}
model: {kind: line}
data: {path: points.txt, prepared_dir: prepared}
train: {epochs: 1, batch_size: 16, device: cpu}
"""


@contextmanager
def points_in(root: Path) -> Iterator[User]:
    """A folder without Slurm, with points and their experiment."""
    with user_in(root) as user:
        user.write("points.txt", "".join(f"{x / 20} {x / 10 + 1}\n" for x in range(60)))
        user.config = user.write("line.yaml", _EXPERIMENT)
        yield user
