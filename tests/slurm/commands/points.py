"""A working folder in which a line through points can be learnt."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.slurm.house import House, house_in

_EXPERIMENT = """\
name: line
task: {kind: toy_points}
model: {kind: line}
data: {path: points.txt, prepared_dir: prepared}
train: {epochs: 1, batch_size: 16, device: cpu}
"""


@contextmanager
def points_in(root: Path) -> Iterator[House]:
    """A folder without Slurm, with points and their experiment."""
    with house_in(root) as house:
        house.write("points.txt", "".join(f"{x / 20} {x / 10 + 1}\n" for x in range(60)))
        house.config = house.write("line.yaml", _EXPERIMENT)
        yield house
