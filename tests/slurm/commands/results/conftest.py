"""A run that has learnt a line through points; each module trains it once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.slurm.support.user import User, user_in
from toolkit.run.run_dir import RunDir

_EXPERIMENT = """\
name: line
task: {kind: toy_points}
model: {kind: line}
data: {path: points.txt, prepared_dir: prepared}
train: {epochs: 1, batch_size: 16, device: cpu}
"""


@pytest.fixture(scope="module")
def user(tmp_path_factory: pytest.TempPathFactory) -> Iterator[User]:
    """A working folder, without Slurm, with points and their experiment."""
    with user_in(tmp_path_factory.mktemp("user")) as user:
        user.write("points.txt", "".join(f"{x / 20} {x / 10 + 1}\n" for x in range(60)))
        user.config = user.write("line.yaml", _EXPERIMENT)
        yield user


@pytest.fixture(scope="module")
def finished(user: User) -> RunDir:
    answer = user.call("run", user.config)
    assert answer.code == 0, answer.err
    return user.run()
