"""A run that was moved without its data scores a file of texts by what it keeps."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.toolkit.tiny import SIZES
from tests.toolkit.workloads.spelling.spelling_files import texts, write_texts
from toolkit.analysis.export import export_run
from toolkit.analysis.reevaluate import Request, rescore
from toolkit.files import read_json
from toolkit.run.run_dir import RunDir
from toolkit.workload import silent
from toolkit.world import World

pytestmark = pytest.mark.usefixtures("threads_restored")


def without_its_origin(run: RunDir, folder: Path) -> RunDir:
    """What is exported of a run, whose data, tokenizers and dictionary are gone."""
    copy = export_run(run, folder / "moved")
    written = copy.config.read_text(encoding="utf-8")
    origin = run.path.parents[1]
    assert str(origin) in written
    copy.config.write_text(written.replace(str(origin), str(folder / "gone")), encoding="utf-8")
    return copy


@pytest.mark.parametrize("name", ["of_words", "of_texts", "of_corrections", "of_word_corrections"])
def test_a_file_scores_as_the_same_texts_did_at_the_runs_end(
    name: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    run = request.getfixturevalue(name)
    moved = without_its_origin(run, tmp_path)
    file = write_texts(tmp_path / "test.txt", texts(SIZES["test"], first=1000))
    found = rescore(moved, World.single(), Request(file=str(file)), silent)
    assert found["metrics"]["test"] == pytest.approx(read_json(run.result)["metrics"]["test"])
    assert not (tmp_path / "gone").exists()
