"""A prepared set is whole or absent, says what the sources say, and is built once."""

from __future__ import annotations

import dataclasses
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from filelock import FileLock

from toolkit.config.kinds import TextTable
from toolkit.data import layout
from toolkit.data.prepared import Prepared, pad_batch, prepare
from toolkit.data.publish import publish_once
from toolkit.data.tokens import UNK_ID, tokenizer
from toolkit.errors import DataError

REPOSITORY = Path(__file__).parents[3]
ADJECTIVES = ("good", "bad", "dull", "bright", "slow", "warm", "thin")


def some_rows(n: int) -> list[tuple[str, str]]:
    """Texts of one to six words, each with a word of its own."""
    return [
        (f"{' '.join(ADJECTIVES[: i % 6])} film{i}".strip(), "positive" if i % 3 else "negative")
        for i in range(n)
    ]


def write_table(path: Path, rows: list[tuple[str, str]]) -> str:
    path.write_text("".join(f"{text}\t{label}\n" for text, label in [("text", "label"), *rows]))
    return str(path)


@pytest.fixture
def table(tmp_path: Path) -> TextTable:
    """One file of 60 rows that is cut into splits."""
    return TextTable(
        path=write_table(tmp_path / "films.tsv", some_rows(60)), prepared_dir=str(tmp_path / "prepared")
    )


@pytest.fixture
def three_files(tmp_path: Path) -> TextTable:
    return TextTable(
        train=write_table(
            tmp_path / "train.tsv", [("a b a", "yes"), (" ", "no"), ("b c c c", "yes"), ("c", "no")]
        ),
        validation=write_table(tmp_path / "dev.tsv", [("a unseen", "no"), ("c", "yes")]),
        test=write_table(tmp_path / "test.tsv", [("a b c d e f", "no")]),
        max_tokens=5,
        prepared_dir=str(tmp_path / "prepared"),
    )


def left_over(data: TextTable) -> list[str]:
    """What lies in the store besides lock files."""
    store = Path(data.prepared_dir)
    return (
        sorted(entry.name for entry in store.iterdir() if entry.suffix != ".lock") if store.exists() else []
    )


def query(prepared: Prepared, statement: str) -> list[Any]:
    connection = sqlite3.connect(prepared.path / "samples.sqlite")
    try:
        return connection.execute(statement).fetchall()
    finally:
        connection.close()


# -- what it holds ---------------------------------------------------------------------------------


def test_every_row_is_in_one_split_with_its_text_label_and_tokens(table: TextTable) -> None:
    prepared = prepare(table)
    cut, vocabulary = tokenizer("words", lowercase=True), prepared.vocabulary()
    found = {}
    for split in ("train", "validation", "test"):
        samples = prepared.split(split)
        assert len(samples) == prepared.splits[split]
        texts = samples.texts(range(len(samples)))
        for index, text in enumerate(texts):
            assert samples.tokens(index).tolist() == vocabulary.encode(cut(text)).tolist()
            assert samples.lengths[index] == len(cut(text))
            found[int(samples.ids[index])] = (text, prepared.labels[samples.labels[index]])
    assert [found[sample] for sample in range(60)] == some_rows(60)
    assert prepared.splits == {"train": 48, "validation": 6, "test": 6}


def test_three_files_are_the_three_splits(three_files: TextTable) -> None:
    prepared = prepare(three_files)
    assert prepared.splits == {"train": 3, "validation": 2, "test": 1}
    assert prepared.labels == ("no", "yes")
    assert prepared.split("train").labels.tolist() == [1, 1, 0]
    assert prepared.split("validation").texts([1, 0, 1]) == ["c", "a unseen", "c"]


def test_the_vocabulary_is_that_of_the_training_split(three_files: TextTable) -> None:
    prepared = prepare(three_files)
    assert prepared.vocabulary().tokens == ("c", "a", "b")
    assert prepared.vocabulary_size == 5
    assert prepared.split("validation").tokens(0).tolist() == [3, UNK_ID]


def test_empty_texts_are_left_out_and_counted(three_files: TextTable) -> None:
    prepared = prepare(three_files)
    train = prepared.split("train")
    assert train.texts(range(len(train))) == ["a b a", "b c c c", "c"]
    assert prepared.meta["skipped"]["empty_texts"] == {"rows": 1, "first": f"{three_files.train}:3"}


def test_long_texts_are_cut_and_counted(three_files: TextTable) -> None:
    prepared = prepare(three_files)
    assert prepared.split("test").lengths.tolist() == [5]
    assert prepared.meta["cut_texts"] == 1


def test_labels_keep_the_order_that_is_given(three_files: TextTable) -> None:
    prepared = prepare(dataclasses.replace(three_files, labels=("yes", "maybe", "no")))
    assert prepared.labels == ("yes", "maybe", "no")
    assert prepared.split("train").labels.tolist() == [0, 0, 2]


def test_stratified_splits_share_the_labels(table: TextTable) -> None:
    """A third of the 60 texts is negative."""
    shares = {"train": 0.5, "validation": 0.25, "test": 0.25}
    prepared = prepare(dataclasses.replace(table, splits=shares, stratify=True))
    negative = {split: int((prepared.split(split).labels == 0).sum()) for split in shares}
    assert negative == {"train": 10, "validation": 5, "test": 5}


def test_people_can_query_it(three_files: TextTable) -> None:
    prepared = prepare(three_files)
    assert query(
        prepared,
        "SELECT line, text, name, mask_length, samples.split FROM samples JOIN texts ON text_id = texts.id "
        "JOIN labels ON samples.label = labels.id",
    )[1:4] == [
        (4, "b c c c", "yes", 4, "train"),
        (5, "c", "no", 1, "train"),
        (2, "a unseen", "no", 2, "validation"),
    ]
    assert query(prepared, "SELECT token, count FROM tokens") == [
        ("<pad>", 0), ("<unk>", 0), ("c", 4), ("a", 2), ("b", 2)
    ]  # fmt: skip
    assert query(
        prepared, "SELECT split, name, texts, samples FROM label_counts JOIN labels ON label = id"
    ) == [
        ("train", "no", 1, 1), ("train", "yes", 2, 2),
        ("validation", "no", 1, 1), ("validation", "yes", 1, 1),
        ("test", "no", 1, 1), ("test", "yes", 0, 0),
    ]  # fmt: skip
    assert query(prepared, "SELECT file, rows FROM sources") == [
        (three_files.train, 4), (three_files.validation, 2), (three_files.test, 1)
    ]  # fmt: skip


def test_more_rows_than_a_batch_and_more_tokens_than_16_bits_come_out_right(tmp_path: Path) -> None:
    rows = [(f"w{i}a w{i}b w{i}c w{i}d", "ab"[i % 2]) for i in range(20_000)]
    data = TextTable(
        train=write_table(tmp_path / "train.tsv", rows),
        validation=write_table(tmp_path / "dev.tsv", rows[:1]),
        prepared_dir=str(tmp_path),
    )
    prepared = prepare(data)
    train = prepared.split("train")
    assert prepared.vocabulary_size == 80_002
    assert train.tokens(0).dtype == np.uint32
    names = prepared.vocabulary().decode
    assert all(" ".join(names(train.tokens(i))) == rows[i][0] for i in (0, 8191, 8192, 16_384, 19_999))
    tokens, _, labels = pad_batch(train, [19_999, 0])
    assert [" ".join(names(row)) for row in tokens] == [rows[19_999][0], rows[0][0]]
    assert labels.tolist() == [1, 0]


def test_arrays_are_plain_and_read_only(table: TextTable) -> None:
    samples = prepare(table).split("train")
    for array in (samples.ids, samples.lengths, samples.labels, samples.flat, samples.tokens(0)):
        assert type(array) is np.ndarray
        assert not array.flags.writeable


def test_a_split_without_samples_is_empty(table: TextTable) -> None:
    data = dataclasses.replace(table, splits={"train": 1, "validation": 1, "test": 0})
    test_split = prepare(data).split("test")
    assert len(test_split) == 0
    assert test_split.texts([]) == []


def test_an_unknown_split_is_answered_with_those_there_are(table: TextTable) -> None:
    with pytest.raises(DataError, match="no split 'dev', only train, validation, test"):
        prepare(table).split("dev")


# -- the key ---------------------------------------------------------------------------------------


def test_the_same_content_is_built_once(table: TextTable) -> None:
    first, second = prepare(table), prepare(table)
    assert (first.built, second.built) == (True, False)
    assert first.path == second.path
    assert first.fingerprint == second.fingerprint
    assert left_over(table) == [first.path.name]


@pytest.mark.parametrize(
    "changed",
    [
        {"lowercase": False},
        {"tokenizer": "whitespace"},
        {"min_count": 2},
        {"max_vocabulary": 5},
        {"max_tokens": 3},
        {"split_seed": 1},
        {"stratify": True},
        {"splits": {"train": 2, "validation": 1}},
        {"labels": ("positive", "negative")},
        {"fold": "word"},
        {"split_unit": "fragment"},
        {"unknown_labels": "refuse"},
    ],
)
def test_every_setting_that_matters_makes_another_set(table: TextTable, changed: dict[str, Any]) -> None:
    other = prepare(dataclasses.replace(table, **changed))
    assert other.built
    assert other.fingerprint != prepare(table).fingerprint


def test_where_files_lie_does_not_matter(table: TextTable, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    copy = str(shutil.copy(str(table.path), tmp_path / "elsewhere"))
    first = prepare(table)
    assert not prepare(dataclasses.replace(table, path=copy)).built
    moved = prepare(dataclasses.replace(table, prepared_dir=str(tmp_path / "other")))
    assert moved.fingerprint == first.fingerprint


def test_changed_content_makes_another_set(table: TextTable) -> None:
    first = prepare(table)
    write_table(Path(str(table.path)), [*some_rows(59), ("another film", "positive")])
    second = prepare(table)
    assert second.built
    assert second.fingerprint != first.fingerprint


def test_two_builds_hold_the_same_bytes(table: TextTable, tmp_path: Path) -> None:
    one = prepare(table)
    other = prepare(dataclasses.replace(table, prepared_dir=str(tmp_path / "other")))
    assert one.meta["files"] == other.meta["files"]


# -- faults in the data ----------------------------------------------------------------------------


def refused(data: TextTable) -> str:
    with pytest.raises(DataError) as caught:
        prepare(data)
    assert left_over(data) == []
    return str(caught.value)


def test_a_bad_row_leaves_nothing_behind(table: TextTable) -> None:
    with open(str(table.path), "a") as stream:
        stream.write("one field\n")
    assert "films.tsv:62: 1 fields, expected 2" in refused(table)


def test_a_label_that_training_lacks_is_traced(three_files: TextTable) -> None:
    write_table(Path(str(three_files.test)), [("a", "yes"), ("b", "perhaps")])
    told = refused(dataclasses.replace(three_files, unknown_labels="refuse"))
    assert "test.tsv:3: label 'perhaps' does not occur in the training split" in told


def test_a_missing_file_leaves_nothing_behind(table: TextTable) -> None:
    assert "Did you mean films.tsv?" in refused(
        dataclasses.replace(table, path=f"{table.path}".replace("films", "filme"))
    )


@pytest.mark.parametrize(
    "changed, told",
    [
        ({"path": None}, "data.train and data.validation missing"),
        ({"train": "x.tsv"}, "data.path is set, and so is data.train"),
        ({"path": None, "train": "x.tsv"}, "data.validation missing"),
        ({"labels": ("a", "a")}, "data.labels names a more than once"),
        ({"labels": ()}, "data.labels is empty"),
        ({"splits": {"train": 0.0, "test": 1.0}}, "gives nothing to 'train'"),
        ({"splits": {"validation": 1.0}}, "gives nothing to 'train'"),
        ({"splits": {"train": 1.0, "test": -0.5}}, "data.splits.test is -0.5"),
        ({"splits": {"train": 1.0, "../test": 0.5}}, "'../test' cannot name a split"),
        ({"splits": {"train": 1.0, "test": float("nan")}}, "data.splits.test is nan"),
        ({"splits": {"train": 1.0, "test": 1e-9}}, "none is left for 'test'"),
        ({"min_count": 1000}, "lower data.min_count"),
        ({"label_column": "text"}, "is column 'text' (data.label_column) not the label?"),
    ],
)
def test_wrong_settings_are_refused_with_the_key(
    table: TextTable, changed: dict[str, Any], told: str
) -> None:
    assert told in refused(dataclasses.replace(table, **changed))


@pytest.mark.parametrize("stage", ["read", "tokenize"])
def test_a_file_that_changes_meanwhile_is_noticed(table: TextTable, stage: str) -> None:
    def meddle(at: str, done: int, total: int | None) -> None:
        if at == stage and done:
            with open(str(table.path), "a") as stream:
                stream.write("one more\tpositive\n")

    with pytest.raises(DataError, match="changed while"):
        prepare(table, meddle)
    assert left_over(table) == []


def test_progress_reaches_the_end_of_every_stage(table: TextTable) -> None:
    last: dict[str, tuple[int, int | None]] = {}
    prepared = prepare(table, lambda stage, done, total: last.__setitem__(stage, (done, total)))
    size = Path(str(table.path)).stat().st_size
    tokens = prepared.meta["tokens"]
    assert last == {
        "hash": (size, size),
        "read": (60, None),
        "tokenize": (60, 60),
        "encode": (tokens, tokens),
    }


# -- damage ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["tokens.bin", "offsets.bin", "labels.bin", "split_train.bin", "samples.sqlite", "meta.json"]
)
def test_a_truncated_or_missing_file_is_named_and_built_again(table: TextTable, name: str) -> None:
    path = prepare(table).path
    os.truncate(path / name, (path / name).stat().st_size // 2)
    for _ in range(2):
        with pytest.raises(DataError, match=name):
            Prepared.open(path)
        assert prepare(table).built
        (path / name).unlink()
    assert prepare(table).built
    assert left_over(table) == [path.name]
    Prepared.open(path).verify()


def test_a_flipped_bit_is_found_on_demand(table: TextTable) -> None:
    prepared = prepare(table)
    content = bytearray((prepared.path / "tokens.bin").read_bytes())
    content[7] ^= 1
    (prepared.path / "tokens.bin").write_bytes(content)
    with pytest.raises(DataError, match=r"tokens\.bin is damaged"):
        Prepared.open(prepared.path).verify()


def test_a_set_under_a_wrong_name_is_built_again(table: TextTable) -> None:
    path = prepare(table).path
    other = prepare(dataclasses.replace(table, lowercase=False))
    shutil.rmtree(path)
    other.path.rename(path)
    assert prepare(table).built
    assert Prepared.open(path).fingerprint != other.fingerprint


def test_a_set_of_another_format_is_refused(table: TextTable) -> None:
    prepared = prepare(table)
    meta = prepared.path / "meta.json"
    meta.write_text(meta.read_text().replace(f'"version": {layout.VERSION}', '"version": 99'))
    with pytest.raises(DataError, match="format 99"):
        Prepared.open(prepared.path)


def test_a_set_that_may_not_be_read_is_left_alone(table: TextTable, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody else's set is not damaged because its owner keeps it private."""
    path = prepare(table).path
    (path / "theirs").touch()

    def refuse(file: Path) -> None:
        raise PermissionError(13, "Permission denied", str(file))

    monkeypatch.setattr("toolkit.data.prepared.read_json", refuse)
    with pytest.raises(DataError, match=r"meta\.json cannot be read .*Permission denied"):
        prepare(table)
    assert (path / "theirs").exists()
    assert left_over(table) == [path.name]


# -- several processes -----------------------------------------------------------------------------


def start(data: TextTable, before: str = "", progress: str = "None") -> subprocess.Popen[str]:
    """A process that prepares the table and prints whether it built."""
    program = (
        "import os, signal, resource\n"
        "from toolkit.config.kinds import TextTable\n"
        "from toolkit.data.prepared import prepare\n"
        f"{before}\n"
        f"print(prepare(TextTable(path={data.path!r}, prepared_dir={data.prepared_dir!r}), {progress}).built)"
    )
    return subprocess.Popen(
        [sys.executable, "-c", program],
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_of_many_processes_one_builds(table: TextTable) -> None:
    write_table(Path(str(table.path)), some_rows(5000))
    processes = [start(table) for _ in range(4)]
    printed = [process.communicate(timeout=120) for process in processes]
    assert sorted(out.strip() for out, _ in printed) == ["False", "False", "False", "True"], printed
    prepare(table).verify()


@pytest.mark.parametrize("stage", ["read", "tokenize", "encode"])
def test_a_killed_builder_leaves_nothing_that_is_mistaken_for_a_set(table: TextTable, stage: str) -> None:
    kill = f"lambda stage, *_: stage == {stage!r} and os.kill(os.getpid(), signal.SIGKILL)"
    killed = start(table, progress=kill)
    killed.communicate(timeout=120)
    assert killed.returncode == -signal.SIGKILL
    (orphan,) = left_over(table)
    assert orphan.endswith(f".{killed.pid}.{socket.gethostname()}.tmp")
    prepared = prepare(table)
    assert prepared.built
    assert left_over(table) == [prepared.path.name]


@pytest.mark.parametrize("kilobytes", [1, 30, 100, 400])
def test_a_full_disk_leaves_nothing_behind(table: TextTable, kilobytes: int) -> None:
    """A limit on file sizes stands in for the full disk: writing fails in different places."""
    write_table(Path(str(table.path)), some_rows(20_000))
    limited = start(
        table, before=f"resource.setrlimit(resource.RLIMIT_FSIZE, ({kilobytes * 1024}, {kilobytes * 1024}))"
    )
    _, error = limited.communicate(timeout=120)
    assert limited.returncode == 1
    assert f"toolkit.errors.DataError: cannot write under {table.prepared_dir}" in error
    assert "et data.prepared_dir to a folder that you may write and that has room" in error
    assert left_over(table) == []


def test_who_waits_too_long_is_told_for_whom(table: TextTable) -> None:
    path = prepare(table).path
    shutil.rmtree(path)
    path.with_name(f".{path.name}.4711.node7.cluster.tmp").mkdir()
    with (
        FileLock(path.with_name(f".{path.name}.lock")),
        pytest.raises(DataError, match=r"waited 0 s for .*films-.*, which process 4711 on node7\.cluster"),
    ):
        prepare(table, lock_timeout_s=0)


def test_a_ready_set_is_opened_while_somebody_holds_the_lock(table: TextTable) -> None:
    path = prepare(table).path
    with FileLock(path.with_name(f".{path.name}.lock")):
        assert not prepare(table, lock_timeout_s=0).built


def test_a_store_that_cannot_be_made_is_named(table: TextTable, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(DataError, match=r"cannot write under .*file/prepared: .*Set data\.prepared_dir"):
        prepare(dataclasses.replace(table, prepared_dir=str(tmp_path / "file" / "prepared")))


def test_without_working_locks_the_first_set_stands(tmp_path: Path) -> None:
    """As on a file system whose locks do nothing: another process finishes first."""
    path = tmp_path / "set"

    def fill(folder: Path) -> None:
        (folder / "mine").touch()
        path.mkdir()
        (path / "theirs").touch()

    assert not publish_once(path, fill, (path / "theirs").exists, 10)
    assert [entry.name for entry in path.iterdir()] == ["theirs"]
    assert not list(tmp_path.glob(".*.tmp"))


def test_an_interrupted_build_leaves_nothing_behind(table: TextTable) -> None:
    def interrupt(stage: str, done: int, total: int | None) -> None:
        if stage == "tokenize":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        prepare(table, interrupt)
    assert left_over(table) == []


def test_preparing_needs_no_torch() -> None:
    program = "import sys, toolkit.data.prepared, toolkit.data.plan; print('torch' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=REPOSITORY, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "False"
