"""The page in a real browser: pictures are decoded, no errors, no scripts, no overflow."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import matplotlib.image
import pytest

from tests.support.patience import PATIENCE_S
from tests.toolkit.report.report_folders import with_seed, write_finished, write_usage
from toolkit.files import append_json_line
from toolkit.report.advice import Advice
from toolkit.report.comparison.document import write_comparison
from toolkit.report.comparison.reading import compare
from toolkit.report.plotting.themes import DARK, LIGHT
from toolkit.report.rendering.writing import write_report

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
# CI is there for these tests too: without a browser they fail in it.
NEEDS_BROWSER = pytest.mark.skipif(
    BROWSER is None and not os.environ.get("CI"), reason="no chromium here; apt-get install chromium"
)
pytestmark = [NEEDS_BROWSER, pytest.mark.slow]

LABELS = [
    "<script>document.title = 'owned'</script>",
    "<img src=x onerror=\"document.title='owned'\">",
    "日本語",
]
SCHEMES = {
    "light": "--blink-settings=preferredColorScheme=1",
    "dark": "--blink-settings=preferredColorScheme=0",
}
#: Contrast does not depend on the width, nor what fits on the scheme.
LOOKS = [("light", 1200), ("dark", 500)]
_POLICY = re.compile(r'<meta http-equiv="Content-Security-Policy"[^>]*>')
# Appended to a copy of the page, for the page itself lets nothing run.
_PROBE = """
<pre id="probe"></pre><script>
addEventListener("load", () => {
  document.querySelectorAll("details").forEach(details => { details.open = true; });
  const images = [...document.images].map(image => [image.complete, image.naturalWidth, image.width]);
  const page = document.documentElement;
  const cards = [...document.querySelectorAll("section")];
  const boxes = [...document.querySelectorAll("section, .block")];
  const wide = boxes.filter(box => box.scrollWidth > box.clientWidth + 1);
  const hiding = wide.filter(box => getComputedStyle(box).overflowX != "visible");
  const scrolled = hiding.map(box => box.innerText.slice(0, 60));
  const cells = [...document.querySelectorAll("td")].map(cell => getComputedStyle(cell).color);
  const words = [...document.querySelectorAll("h1, h2, th, td, dt, dd, p, strong, summary")];
  const inks = words.map(word => getComputedStyle(word).color);
  const papers = [getComputedStyle(document.body), ...cards.map(card => getComputedStyle(card))];
  document.getElementById("probe").textContent = JSON.stringify({
    images, scrolled, cut: page.scrollWidth - page.clientWidth, title: document.title,
    tables: document.querySelectorAll("table").length, colours: [...new Set(cells)],
    inks: [...new Set(inks)], papers: [...new Set(papers.map(paper => paper.backgroundColor))],
    background: getComputedStyle(document.body).backgroundColor});
});
</script></body>"""


def chromium(page: Path, *options: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Open a page in a browser with a profile of its own; its console goes to standard error."""
    assert BROWSER is not None
    command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
    command += ["--hide-scrollbars", "--enable-logging=stderr", f"--user-data-dir={folder / 'profile'}"]
    command += [*options, page.as_uri()]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=True)


def probe(page: Path, folder: Path, *options: str) -> Any:
    """Return what a script finds in a copy of the page that, unlike the page, may run it."""
    copy = folder / "probe.html"
    html, replaced = _POLICY.subn("", page.read_text(encoding="utf-8"))
    assert replaced == 1
    copy.write_text(html.replace("</body>", _PROBE), encoding="utf-8")
    dump = chromium(copy, "--dump-dom", *options, folder=folder).stdout
    found = re.search(r'<pre id="probe">(.*?)</pre>', dump, re.DOTALL)
    return json.loads(found[1])


Seen = Callable[[Path, str, int], Any]


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Seen:
    """Probes a page with a color scheme and a width of the window, each once."""
    folder = tmp_path_factory.mktemp("probes")

    @cache
    def probed(page: Path, scheme: str, width: int) -> Any:
        return probe(page, folder, SCHEMES[scheme], f"--window-size={width},3000")

    return probed


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_report(write_finished(tmp_path_factory.mktemp("runs") / "sst2-1f3a9c", LABELS))


@pytest.mark.parametrize("scheme, width", LOOKS)
def test_every_picture_is_decoded_and_the_page_fits_the_window(
    page: Path, seen: Seen, scheme: str, width: int
) -> None:
    found = seen(page, scheme, width)
    assert len(found["images"]) == 5
    for complete, natural_width, shown_width in found["images"]:
        assert complete
        assert natural_width > 1000
        assert 300 < shown_width < width
    assert found["cut"] == 0
    assert found["tables"] == 5


def test_paper_shows_what_scrolls_on_a_screen(page: Path, seen: Seen, tmp_path: Path) -> None:
    """A browser makes the page smaller where a box is wider than the paper."""
    assert seen(page, "dark", 500)["scrolled"]
    paper = tmp_path / "paper.html"
    paper.write_text(page.read_text(encoding="utf-8").replace("@media print", "@media all"), encoding="utf-8")
    assert probe(paper, tmp_path, "--window-size=500,3000")["scrolled"] == []


def test_labels_run_no_script_even_if_scripts_are_allowed(page: Path, seen: Seen) -> None:
    assert seen(page, *LOOKS[0])["title"] == "sst2-1f3a9c"


def test_the_page_follows_the_preferred_color_scheme(page: Path, seen: Seen) -> None:
    light, dark = (seen(page, *look) for look in LOOKS)
    assert (light["background"], light["colours"]) == ("rgb(244, 245, 247)", ["rgb(31, 35, 40)"])
    assert (dark["background"], dark["colours"]) == ("rgb(14, 17, 22)", ["rgb(230, 233, 238)"])


def test_the_browser_logs_no_error(page: Path, tmp_path: Path) -> None:
    assert "CONSOLE" not in chromium(page, f"--screenshot={tmp_path / 'page.png'}", folder=tmp_path).stderr


@pytest.fixture(scope="module")
def used_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that was put back once, with the use of its machines, and advice."""
    run = write_finished(tmp_path_factory.mktemp("runs") / "sst2-1f3a9c")
    append_json_line(run.attempts, {"attempt": 0, "nonce": "a"})
    write_usage(run, "a", [{}, {"host": "a-host-with-a-rather-long-name.cluster.example.org"}])
    advice = Advice(
        topic="memory",
        found="4.0 GB at most on a-host-with-a-rather-long-name.cluster.example.org",
        bound="50 % of 64.0 GB",
        change="resources.mem=5G",
        reason="Less memory is free on more hosts, so the job starts sooner.",
    )
    return write_report(run, advice=[advice])


@pytest.fixture(scope="module")
def compared_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two settings with two seeds each."""
    folder = tmp_path_factory.mktemp("runs")
    runs = [write_finished(folder / f"sst2-{number}", lr=0.1 ** (1 + number // 2)) for number in range(4)]
    for number, run in enumerate(runs):
        with_seed(run, number % 2)
    return write_comparison(compare(runs), folder / "all")


@pytest.fixture(params=["used_page", "compared_page"], ids=["one run", "several runs"])
def any_page(request: pytest.FixtureRequest) -> Path:
    return Path(request.getfixturevalue(request.param))


def contrast(first: str, second: str) -> float:
    """The ratio of two colours' luminances, as WCAG 2 defines it: 4.5 is its bound for text."""
    lighter, darker = sorted((_luminance(first), _luminance(second)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(colour: str) -> float:
    parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_contrast_of_black_on_white_is_21() -> None:
    assert contrast("rgb(0, 0, 0)", "rgb(255, 255, 255)") == pytest.approx(21)


@pytest.mark.parametrize("scheme, width", LOOKS)
def test_text_has_enough_contrast_in_both_color_schemes(
    any_page: Path, seen: Seen, scheme: str, width: int
) -> None:
    found = seen(any_page, scheme, width)
    assert min(contrast(ink, paper) for ink in found["inks"] for paper in found["papers"]) > 4.5
    assert all(complete and natural > 800 for complete, natural, _ in found["images"])
    assert found["cut"] == 0
    if width == 1200:
        assert found["scrolled"] == []


@pytest.mark.parametrize("scheme", SCHEMES)
def test_time_lines_and_curves_are_drawn_in_both_color_schemes(
    any_page: Path, tmp_path: Path, scheme: str
) -> None:
    picture = tmp_path / "page.png"
    chromium(any_page, f"--screenshot={picture}", "--window-size=1200,7000", SCHEMES[scheme], folder=tmp_path)
    image = matplotlib.image.imread(picture)[:, :, :3]
    theme = {"light": LIGHT, "dark": DARK}[scheme]
    # Training fills the bars of a time line with the third colour; a curve is thin.
    for colour, least in ((theme.series[2], 4000), (theme.series[0], 200), (theme.series[1], 200)):
        wanted = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
        assert (abs(image - wanted).max(axis=2) < 0.05).sum() > least
