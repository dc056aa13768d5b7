"""WordNet becomes sentences with a mention and an entity database that do not give the answer away."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from tests.scripts.getting import run, tarball
from toolkit.workloads.entity_disambiguation.data.entities.database import EntityDatabase
from toolkit.workloads.entity_disambiguation.data.entities.sentences import read_sentences

#: In the form of wndb(5WN), exceptions and senseidx(5WN).
TEXTS = {
    "data.verb": (
        "  1 This is a notice.\n"
        "00000100 33 v 02 overtake 0 catch_up_with 0 001 @ 00000200 v 0000 00 | "
        'catch up with; "the Rolls overtook us"; "she caught up with him"; "the Rolls overtook us"\n'
        '00000200 38 v 01 overtake 0 000 01 + 08 00 | travel past; "Overtaking is risky" - A. Driver\n'
        '00000300 35 v 01 catch 0 000 00 | take hold of; "nobody here does it"\n'
    ),
    "data.adj": '00000100 00 s 01 fast(a) 0 001 & 00000200 a 0000 | quick; "the fastest, by far"\n'
    "00000200 00 a 01 fast 0 000 | firm\n",
    "data.noun": "",
    "data.adv": "",
    "verb.exc": "overtook overtake\ncaught catch\n",
    "noun.exc": "",
    "adj.exc": "",
    "adv.exc": "",
    "index.sense": (
        "overtake%2:33:00:: 00000100 2 3\n"
        "overtake%2:38:00:: 00000200 1 2\n"
        "catch_up_with%2:33:00:: 00000100 1 9\n"
        "catch%2:35:00:: 00000300 1 5\n"
        "fast%5:00:00:quick:00 00000100 1 4\n"
        "fast%3:00:00:: 00000200 2 4\n"
    ),
}
FILES = {name: text.encode() for name, text in TEXTS.items()}


@pytest.fixture
def script(load: Callable[[str], ModuleType]) -> ModuleType:
    return load("get_wordnet")


@pytest.fixture
def database(folder: Path) -> EntityDatabase:
    return EntityDatabase.load(folder / "entity_db")


@pytest.fixture
def folder(script: ModuleType, tmp_path: Path) -> Path:
    script.write(FILES | {script.NOTICE: b"free"}, tmp_path / "wordnet", (3, 3))
    return tmp_path / "wordnet"


def package(files: dict[str, bytes]) -> bytes:
    """A .deb: an `ar` archive with the files in data.tar.xz."""
    parts = {"debian-binary": b"2.0\n", "control.tar.xz": b"odd", "data.tar.xz": tarball(files, "w:xz")}
    return b"!<arch>\n" + b"".join(
        f"{name:<16}{0:<12}{0:<6}{0:<6}{644:<8}{len(of):<10}`\n".encode() + of + b"\n" * (len(of) % 2)
        for name, of in parts.items()
    )


def test_example_becomes_a_sentence_with_a_mention_of_its_lemma(folder: Path) -> None:
    found = [
        (sentence.text[slice(*mention.characters)], mention.alias, mention.gold)
        for sentence in read_sentences(folder / "sentences.jsonl")
        for mention in sentence.mentions
    ]
    assert found == [
        ("overtook", "overtake.v", "overtake.v.02"),
        ("Overtaking", "overtake.v", "overtake.v.01"),
        ("fastest", "fast.a", "fast.s.01"),
    ]


def test_a_lemma_is_found_as_a_whole_word(script: ModuleType) -> None:
    whole_words = sys.modules[script.WordNet.__module__]._whole_words
    assert whole_words("fasten breakfast fast", "fast") == (17, 21)
    assert whole_words("fasten breakfast", "fast") is None


def test_left_out_examples_are_counted(script: ModuleType, tmp_path: Path) -> None:
    told = script.write(FILES, tmp_path / "wordnet", (3, 3))
    assert "3 sentences with more than one candidate, 3 golds among 5 entities" in told
    assert "left out: 1 with one candidate, 1 in which no lemma is found" in told
    assert "right by chance 0.500, by the most frequent sense 0.667" in told


def test_sentences_and_database_fit_each_other(folder: Path, database: EntityDatabase) -> None:
    for sentence in read_sentences(folder / "sentences.jsonl"):
        database.check_aliases(sentence, folder)
        for mention in sentence.mentions:
            assert mention.gold in dict(database.candidates(mention.alias))
            assert sentence.source == (mention.gold, database.title(mention.gold))


def test_candidates_have_their_tag_counts(database: EntityDatabase) -> None:
    assert database.candidates("overtake.v") == [("overtake.v.02", 3), ("overtake.v.01", 2)]
    assert database.candidates("fast.a") == [("fast.s.01", 4), ("fast.a.02", 4)]


def test_entities_have_definition_type_and_relations(database: EntityDatabase) -> None:
    assert database.title("overtake.v.02") == "overtake, catch up with"
    assert database.types("overtake.v.02") == {"lexname": ["verb.competition"]}
    assert database.relations("overtake.v.02") == [("hypernym", "overtake.v.01")]
    assert database.relations("fast.s.01") == [("similar to", "fast.a.02")]


def test_no_description_quotes_an_example(folder: Path, database: EntityDatabase) -> None:
    descriptions = {qid: database.description(qid) for qid in database.entity_ids}
    assert descriptions["overtake.v.01"] == "travel past"
    for sentence in read_sentences(folder / "sentences.jsonl"):
        assert not [qid for qid, text in descriptions.items() if sentence.text in text or '"' in text]


def test_notice_is_written_beside_the_data(folder: Path) -> None:
    assert (folder / "NOTICE").read_bytes() == b"free"


def test_unexpected_counts_are_refused_and_leave_nothing(script: ModuleType, tmp_path: Path) -> None:
    with pytest.raises(script.Problem, match="found 3 sentences of 3 golds, expected 4 of 3"):
        script.write(FILES, tmp_path / "wordnet", (4, 3))
    assert list(tmp_path.iterdir()) == []


def test_files_are_unpacked_from_a_debian_package(script: ModuleType) -> None:
    archive = package({script.INSIDE + "data.verb": b"text", "./usr/share/man": b"", script.NOTICE: b"free"})
    assert script.unpacked(archive) == {"data.verb": b"text", script.NOTICE: b"free"}


@pytest.mark.parametrize("damaged", [b"", b"no archive at all, but longer than a header: " + b"x" * 60])
def test_a_damaged_package_is_refused(script: ModuleType, damaged: bytes) -> None:
    with pytest.raises(script.Problem, match="the package cannot be read"):
        script.unpacked(damaged)


def test_wordnet_without_a_file_is_refused(script: ModuleType, tmp_path: Path) -> None:
    with pytest.raises(script.Problem, match=r"WordNet cannot be read: 'data\.noun'"):
        script.write({}, tmp_path / "wordnet", (3, 3))


# ---- the script as it is started


def test_existing_folder_is_left_alone(folder: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    done = run("get_wordnet", "--output", folder)
    assert (done.returncode, done.stdout) == (0, f"{folder} is there already\n")
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before


def test_error_without_packages_names_the_archive_option(tmp_path: Path) -> None:
    (tmp_path / "apt.conf").write_text(
        f'Dir::Etc::sourcelist "/dev/null";\nDir::Etc::sourceparts "-";\nDir::State::lists "{tmp_path}";\n'
        f'Dir::Cache::pkgcache "";\nDir::Cache::srcpkgcache "";\n'
    )
    done = run("get_wordnet", STK_DATA_DIR=str(tmp_path), APT_CONFIG=str(tmp_path / "apt.conf"))
    assert done.returncode == 1
    assert "get_wordnet: could not fetch wordnet-base=1:3.0-37 with apt-get (" in done.stderr
    assert "pass --archive FILE" in done.stderr
    assert not (tmp_path / "wordnet").exists()


def test_database_files_have_one_entity_per_line(folder: Path) -> None:
    text = (folder / "entity_db" / "entity_mappings" / "qid2title.json").read_text()
    assert text.splitlines()[1] == '"catch.v.01": "catch",'
    assert json.loads(text)["catch.v.01"] == "catch"
