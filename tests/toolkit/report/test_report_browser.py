"""The page in a real browser: pictures decoded, nothing complained about, nothing run, nothing cut off."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import matplotlib.image
import pytest

from tests.toolkit.report.report_folders import write_classified, write_config, write_finished, write_metrics
from toolkit.report import write_comparison, write_report
from toolkit.rundir import RunDir

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
# CI is there for these tests too: without a browser they fail in it.
pytestmark = pytest.mark.skipif(
    BROWSER is None and not os.environ.get("CI"), reason="no chromium here; apt-get install chromium"
)

LABELS = [
    "<script>document.title = 'owned'</script>",
    "<img src=x onerror=\"document.title='owned'\">",
    "日本語",
]
_POLICY = re.compile(r'<meta http-equiv="Content-Security-Policy"[^>]*>')
# Appended to a copy of the page, for the page itself lets nothing run.
_PROBE = """
<pre id="probe"></pre><script>
addEventListener("load", () => {
  document.querySelectorAll("details").forEach(details => { details.open = true; });
  const images = [...document.images].map(image => [image.complete, image.naturalWidth, image.width]);
  const page = document.documentElement;
  const cards = [...document.querySelectorAll("section")];
  const wide = cards.filter(card => card.scrollWidth > card.clientWidth + 1);
  const scrolled = wide.map(card => card.innerText.slice(0, 60));
  const cells = [...document.querySelectorAll("td")].map(cell => getComputedStyle(cell).color);
  document.getElementById("probe").textContent = JSON.stringify({
    images, scrolled, cut: page.scrollWidth - page.clientWidth, title: document.title,
    tables: document.querySelectorAll("table").length, colours: [...new Set(cells)],
    background: getComputedStyle(document.body).backgroundColor});
});
</script></body>"""


def chromium(page: Path, *options: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Open a page in a browser with a profile of its own; its console goes to standard error."""
    assert BROWSER is not None
    command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
    command += [
        "--hide-scrollbars",
        "--enable-logging=stderr",
        f"--user-data-dir={folder / 'profile'}",
        *options,
        page.as_uri(),
    ]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)


def probe(page: Path, folder: Path, *options: str) -> Any:
    """Return what a script finds in a copy of the page that, unlike the page, may run it."""
    copy = folder / "probe.html"
    html, replaced = _POLICY.subn("", page.read_text(encoding="utf-8"))
    assert replaced == 1
    copy.write_text(html.replace("</body>", _PROBE), encoding="utf-8")
    dump = chromium(copy, "--dump-dom", *options, folder=folder).stdout
    found = re.search(r'<pre id="probe">(.*?)</pre>', dump, re.DOTALL)
    assert found is not None
    return json.loads(found[1])


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_report(write_finished(tmp_path_factory.mktemp("runs") / "sst2-1f3a9c", LABELS))


@pytest.fixture(scope="module", params=[2, 11], ids=["two classes", "eleven classes"])
def folded_page(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = RunDir(tmp_path_factory.mktemp("runs") / "topics-1f3a9c")
    write_config(run)
    write_metrics(run)
    write_classified(run, [f"Society and social sciences {n}" for n in range(request.param)], texts=90)
    return write_report(run)


@pytest.mark.parametrize("width", [1200, 500])
def test_classes_with_long_names_are_shown_without_cutting_anything_off(
    folded_page: Path, tmp_path: Path, width: int
) -> None:
    seen = probe(folded_page, tmp_path, f"--window-size={width},4000")
    assert all(complete and natural > 1000 for complete, natural, _ in seen["images"])
    assert seen["cut"] == 0
    if width == 1200:
        assert seen["scrolled"] == []


@pytest.mark.parametrize("width", [1200, 500])
def test_every_picture_is_decoded_and_nothing_is_cut_off(page: Path, tmp_path: Path, width: int) -> None:
    seen = probe(page, tmp_path, f"--window-size={width},1600")
    assert len(seen["images"]) == 4
    for complete, natural_width, shown_width in seen["images"]:
        assert complete
        assert natural_width > 1000
        assert 300 < shown_width < width
    assert seen["cut"] == 0
    assert seen["tables"] == 6


def test_labels_and_texts_run_nothing_even_where_scripts_may_run(page: Path, tmp_path: Path) -> None:
    assert probe(page, tmp_path)["title"] == "sst2-1f3a9c"


def test_the_page_follows_the_readers_dark_setting(page: Path, tmp_path: Path) -> None:
    light = probe(page, tmp_path, "--blink-settings=preferredColorScheme=1")
    dark = probe(page, tmp_path, "--blink-settings=preferredColorScheme=0")
    assert (light["background"], light["colours"]) == ("rgb(244, 245, 247)", ["rgb(31, 35, 40)"])
    assert (dark["background"], dark["colours"]) == ("rgb(14, 17, 22)", ["rgb(230, 233, 238)"])


def test_the_browser_finds_nothing_to_complain_about_and_shows_the_curves(page: Path, tmp_path: Path) -> None:
    picture = tmp_path / "page.png"
    answer = chromium(page, f"--screenshot={picture}", "--window-size=1200,1400", folder=tmp_path)
    assert "CONSOLE" not in answer.stderr
    image = matplotlib.image.imread(picture)[:, :, :3]
    assert image.shape == (1400, 1200, 3)
    orange = abs(image - (0.835, 0.369, 0.0)).max(axis=2) < 0.05
    assert orange.sum() > 300  # the validation curve


def test_runs_side_by_side_are_shown_too(tmp_path: Path) -> None:
    runs = [write_finished(tmp_path / f"run-{number}") for number in range(3)]
    seen = probe(write_comparison(runs, tmp_path / "comparison.html"), tmp_path)
    assert [natural_width > 1000 for _, natural_width, _ in seen["images"]] == [True, True]
    assert seen["cut"] == 0
