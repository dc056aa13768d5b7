"""`stk evaluate` on a finished run of text classification."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.slurm.support.user import User
from toolkit.run.run_dir import RunDir

COLUMNS = ("data.text_column=body", "data.label_column=verdict")


@pytest.mark.slow
def test_another_file_is_scored_and_its_skipped_rows_are_shown(user: User) -> None:
    user.write("other.csv", "body,verdict\nfine movie,good\nawful scene,bad\nso so,meh\n")
    answer = user.call("run", user.config, "train.epochs=3")
    assert answer.code == 0, answer.err
    run_id = user.run("train.epochs=3").run_id
    answer = user.stk("evaluate", run_id, "--data", "other.csv", *COLUMNS)
    assert answer.code == 0, answer.err
    assert "Confusion (test)" in answer.out
    assert "left out 1 row with unknown labels: 'meh' 1" in answer.out
    (line,) = [line for line in answer.out.splitlines() if line.startswith("scored  ")]
    folder = RunDir(Path(line.removeprefix("scored  ")))
    assert (folder.artifacts / "other_testset_predictions.csv").exists()
