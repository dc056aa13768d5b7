"""The page of many classes in a real browser."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.toolkit.report.report_folders import write_config, write_metrics
from tests.toolkit.report.test_report_browser import NEEDS_BROWSER, probe
from tests.toolkit.workloads.text_classification.report.classified_runs import KIND, write_classified
from toolkit.report.rendering.writing import write_report
from toolkit.run.run_dir import RunDir

pytestmark = [NEEDS_BROWSER, pytest.mark.slow]


@pytest.fixture(scope="module")
def folded_page(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = RunDir(tmp_path_factory.mktemp("runs") / "topics-1f3a9c")
    write_config(run, kind=KIND)
    write_metrics(run)
    write_classified(run, [f"Society and social sciences {n}" for n in range(request.param)], texts=90)
    return write_report(run)


@pytest.mark.parametrize("folded_page, width", [(2, 1200), (11, 1200), (11, 500)], indirect=["folded_page"])
def test_classes_with_long_names_are_shown_completely(folded_page: Path, tmp_path: Path, width: int) -> None:
    seen = probe(folded_page, tmp_path, f"--window-size={width},4000")
    assert all(complete and natural > 1000 for complete, natural, _ in seen["images"])
    assert seen["cut"] == 0
    if width == 1200:
        assert seen["scrolled"] == []
