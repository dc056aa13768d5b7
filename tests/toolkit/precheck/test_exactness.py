"""A submission warns of the share of each step that exactness took in an earlier run of this name."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.toolkit.support.tiny import tiny
from toolkit.config import run_id
from toolkit.config.schema import Experiment
from toolkit.files import append_json_line
from toolkit.precheck.exactness import exactness_warnings
from toolkit.run.run_dir import RunDir


def earlier(folder: Path, name: str, **line: float) -> RunDir:
    run = RunDir(folder / name)
    run.path.mkdir(parents=True)
    append_json_line(run.attempts, {"attempt": 1, **line})
    return run


def told(experiment: Experiment) -> str:
    return "".join(each.problem for each in exactness_warnings(experiment))


def test_a_large_share_of_exactness_is_reported_with_its_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STK_EXPERIMENT_DIR", str(tmp_path / "runs"))
    experiment = tiny(tmp_path)
    assert told(experiment) == ""
    run = earlier(tmp_path / "runs", run_id(experiment), exact_share=0.62, exact_s=0.004)
    assert "62 %" in told(experiment)
    assert run.run_id in told(experiment)
    assert told(tiny(tmp_path, "train.reduction=fast")) == ""


@pytest.mark.parametrize("line", [{}, {"exact_share": 0.1}, {"exact_share": None}, {"exact_share": "1"}])
def test_a_small_or_missing_share_causes_no_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: dict[str, float]
) -> None:
    monkeypatch.setenv("STK_EXPERIMENT_DIR", str(tmp_path / "runs"))
    earlier(tmp_path / "runs", "tiny-00000000", **line)
    assert told(tiny(tmp_path)) == ""
