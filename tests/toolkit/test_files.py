"""A reader sees the old file or the new one, and only complete lines."""

from __future__ import annotations

import json
import os
import resource
import signal
import stat
import zlib
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

from tests.toolkit.support.ranks import in_ranks, run_ranks
from toolkit.files import (
    append_json_line,
    crc32,
    create_once,
    make_like_parent,
    open_atomic,
    parsed,
    read_json,
    read_json_lines,
    write_atomic,
    write_json,
)
from toolkit.system.world import World

LINES = 200
#: Two texts: letter, length, and how many different letters.
WHOLE = {"a 300000 1", "b 200000 1"}


def append_many(world: World, path: Path) -> None:
    for number in range(LINES):
        append_json_line(path, {"rank": world.rank, "number": number, "text": "é" * (50 * world.rank)})


def create(world: World, path: Path) -> bool:
    return create_once(path, f"rank {world.rank}\n" * 1000)


def die_in_rename(world: World, path: Path) -> None:
    """Everything is written, nothing is renamed yet."""
    os.replace = lambda *names: os.kill(os.getpid(), signal.SIGKILL)
    write_atomic(path, "new" * 10_000)


def write_or_read(world: World, path: Path) -> set[str]:
    """Rank 0 writes two texts in turns, until the other has read each of them often; what it has read."""
    done = path.with_name("done")
    if world.rank == 0:
        for text in cycle(["a" * 300_000, "b" * 200_000]):
            write_atomic(path, text)
            if done.exists():
                return set()
    seen: Counter[str] = Counter()
    while min(seen[each] for each in WHOLE) < 30:
        text = path.read_text()
        seen[f"{text[0]} {len(text)} {len(set(text))}" if text else "nothing"] += 1
    done.touch()
    return set(seen)


def names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


def test_atomic_write_replaces_the_whole_file_and_leaves_nothing_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_atomic(path, b"a longer old text")
    write_atomic(path, "neu: ü")
    assert path.read_text(encoding="utf-8") == "neu: ü"
    assert names(tmp_path) == ["file"]


def test_reader_never_sees_a_partial_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("b" * 200_000)
    _, seen = in_ranks(2, write_or_read, path)
    assert seen == WHOLE


def test_writer_killed_before_the_rename_leaves_the_old_bytes(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    (ended,) = run_ranks(1, die_in_rename, path)
    assert ended.exit_status == -signal.SIGKILL
    assert path.read_text() == "old"
    assert [name for name in names(tmp_path) if not name.startswith(".")] == ["file"]


def test_json_is_written_readable_and_refuses_nan(tmp_path: Path) -> None:
    path = tmp_path / "value.json"
    write_json(path, {"name": "Ü", "values": [1, None, 0.1]})
    assert read_json(path) == {"name": "Ü", "values": [1, None, 0.1]}
    assert "Ü" in path.read_text(encoding="utf-8")
    with pytest.raises(ValueError, match="nan"):
        write_json(path, {"loss": float("nan")})
    assert read_json(path)["name"] == "Ü"


def test_name_of_a_file_that_is_not_utf_8_is_written_and_read_back(tmp_path: Path) -> None:
    value = {"message": "cannot open " + os.fsdecode(b"caf_\xe9.jpg")}
    write_json(tmp_path / "value.json", value)
    assert create_once(tmp_path / "once.json", json.dumps(value, ensure_ascii=False))
    append_json_line(tmp_path / "lines.jsonl", value)
    assert [read_json(tmp_path / name) for name in ("value.json", "once.json")] == [value, value]
    assert list(read_json_lines(tmp_path / "lines.jsonl")) == [value]


def test_json_that_an_editor_has_begun_with_a_byte_order_mark_is_read() -> None:
    assert parsed(b'\xef\xbb\xbf{"a": 1}') == {"a": 1}
    assert parsed(b'{"a": "\xff"}') is None


def test_missing_json_reads_as_none(tmp_path: Path) -> None:
    assert read_json(tmp_path / "missing.json") is None
    assert list(read_json_lines(tmp_path / "missing.jsonl")) == []


def test_lines_of_concurrent_processes_do_not_mix(tmp_path: Path) -> None:
    path = tmp_path / "lines.jsonl"
    run_ranks(4, append_many, path)
    # A line that is just being written may look torn to the next writer, which then begins with a line break.
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line]
    records = [json.loads(line) for line in lines]
    assert records == list(read_json_lines(path))
    for rank in range(4):
        assert [record["number"] for record in records if record["rank"] == rank] == list(range(LINES))
    assert len(records) == 4 * LINES


def test_torn_last_line_is_left_out_and_the_next_line_is_kept(tmp_path: Path) -> None:
    """A writer that was killed leaves half a line."""
    path = tmp_path / "lines.jsonl"
    append_json_line(path, {"number": 1})
    with open(path, "a") as stream:
        stream.write('{"number": 2, "te')
    assert list(read_json_lines(path)) == [{"number": 1}]
    append_json_line(path, {"number": 3})
    append_json_line(path, {"number": 4})
    assert list(read_json_lines(path)) == [{"number": 1}, {"number": 3}, {"number": 4}]


def test_line_cut_inside_a_character_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "lines.jsonl"
    append_json_line(path, {"number": 1})
    whole = path.read_bytes()
    path.write_bytes(whole + '{"text": "ü'.encode()[:-1])
    assert list(read_json_lines(path)) == [{"number": 1}]


def test_exactly_one_of_several_racing_processes_creates_the_file(tmp_path: Path) -> None:
    path = tmp_path / "once"
    ended = run_ranks(4, create, path)
    winners = [rank for rank, end in enumerate(ended) if end.value]
    assert len(winners) == 1
    assert path.read_text() == f"rank {winners[0]}\n" * 1000
    assert names(tmp_path) == ["once"]


def test_exactly_one_of_several_racing_threads_creates_the_file(tmp_path: Path) -> None:
    """As on two hosts whose processes have the same id."""
    for attempt in range(20):
        path = tmp_path / f"once_{attempt}"
        with ThreadPoolExecutor(4) as threads:
            won = list(threads.map(lambda text, path=path: create_once(path, text * 500), "abcd"))
        assert sum(won) == 1
        assert path.read_text() == "abcd"[won.index(True)] * 500


def test_create_once_succeeds_if_nfs_reports_an_existing_file_after_creating_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def link(source: Path, target: Path, link: Any = os.link) -> None:
        link(source, target)
        raise FileExistsError

    monkeypatch.setattr(os, "link", link)
    assert create_once(tmp_path / "file", "text")
    monkeypatch.undo()
    assert not create_once(tmp_path / "file", "other")


def test_crc32_equals_that_of_zlib(tmp_path: Path) -> None:
    path = tmp_path / "file"
    data = bytes(range(256)) * 8200
    path.write_bytes(data)
    assert crc32(path) == zlib.crc32(data)


def append_beyond_the_limit(world: World, path: Path) -> str:
    """In a process of its own, for which files end at 40 bytes, as on a disk that gets full."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    append_json_line(path, {"number": 1})
    resource.setrlimit(resource.RLIMIT_FSIZE, (40, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
    try:
        append_json_line(path, {"number": 2, "text": "x" * 100})
    except OSError as error:
        return str(error.strerror)
    return "no error"


def test_partially_written_line_raises_and_leaves_no_part(tmp_path: Path) -> None:
    path = tmp_path / "lines.jsonl"
    assert in_ranks(1, append_beyond_the_limit, path) == ["File too large"]
    assert path.read_text() == '{"number": 1}\n'
    append_json_line(path, {"number": 2, "text": "x" * 100})
    assert [line["number"] for line in read_json_lines(path)] == [1, 2]


def test_open_atomic_creates_the_file_when_it_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    with open_atomic(path) as stream:
        stream.write("é,1\r\n")
        stream.flush()
        assert not path.exists()
    assert path.read_bytes() == "é,1\r\n".encode()
    assert names(tmp_path) == ["table.csv"]


def test_open_atomic_keeps_the_old_file_if_the_writer_fails(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("old")
    with pytest.raises(UnicodeEncodeError), open_atomic(path) as stream:
        stream.write("new" * 100_000 + "\ud800")
    assert (path.read_text(), names(tmp_path)) == ("old", ["table.csv"])


def test_a_folder_in_the_place_of_a_file_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    (tmp_path / "results").mkdir()
    with pytest.raises(IsADirectoryError) as caught, open_atomic(tmp_path / "results"):
        pytest.fail("it was opened")
    assert caught.value.filename == str(tmp_path / "results")
    assert names(tmp_path) == ["results"]


@pytest.mark.parametrize("folder, error", [("nodir", FileNotFoundError), ("a-file", NotADirectoryError)])
def test_a_folder_that_does_not_exist_is_reported_with_the_name_of_the_file(
    tmp_path: Path, folder: str, error: type[OSError]
) -> None:
    (tmp_path / "a-file").touch()
    with pytest.raises(error) as caught:
        write_atomic(tmp_path / folder / "words.txt", "")
    assert caught.value.filename == str(tmp_path / folder / "words.txt")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to a group of others")
@pytest.mark.parametrize("around, expected", [(0o1777, 0o1777), (0o775, 0o755), (0o770, 0o700)])
def test_folder_of_another_group_opens_to_it_what_is_open_to_all(
    tmp_path: Path, around: int, expected: int
) -> None:
    os.chown(tmp_path, -1, 4711)
    tmp_path.chmod(around)
    make_like_parent(tmp_path / "old")
    assert stat.S_IMODE((tmp_path / "old").stat().st_mode) == expected
