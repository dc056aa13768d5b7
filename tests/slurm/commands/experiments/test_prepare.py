"""stk prepare: builds the data once, and says what they hold."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.slurm.support.user import User
from toolkit.exit_codes import ExitCode


def test_prepare_builds_once_and_summarizes_what_was_built(user: User) -> None:
    films = "".join(f"a film {number}\tgood\n" for number in range(50))
    (user.root / "reviews.tsv").write_text("text\tlabel\n" + films + "a film\tgodo\n")
    first = user.call("prepare", user.config, "data.labels=[good]")
    (path,) = (user.root / "prepared").glob("reviews-*")
    assert (first.code, first.err) == (0, "")
    assert first.out.splitlines() == [
        f"prepared: train 40, validation 5, test 5; 1 labels, 44 tokens; {path}",
        "left out: 1 with another label",
    ]
    before = path.stat().st_mtime_ns
    second = user.call("prepare", user.config, "data.labels=[good]")
    assert second.out.splitlines()[0].startswith("was prepared before: train 40,")
    assert second.out.splitlines()[1:] == first.out.splitlines()[1:]
    assert (path.stat().st_mtime_ns, user.runs) == (before, [])


def test_json_document_counts_the_left_out_rows(user: User) -> None:
    (user.root / "reviews.tsv").write_text("text\tlabel\n" + "a film\tgood\n" * 50 + "a film\tgodo\n")
    answer = user.call("prepare", user.config, "data.labels=[good]", "--json")
    found = json.loads(answer.out)
    assert answer.err == ""
    assert Path(found["path"]).is_dir()
    assert (found["built"], found["splits"]) == (True, {"train": 40, "validation": 5, "test": 5})
    assert found["skipped"] == 1
    assert not json.loads(user.call("prepare", user.config, "data.labels=[good]", "--json").out)["built"]


def test_progress_of_a_long_preparation_is_lines_in_a_log(
    user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("toolkit.training.output.progress_display._LINE_EVERY_S", 0)
    answer = user.stk("prepare", user.config, "--json")
    assert json.loads(answer.out)["built"]
    assert "hash: " in answer.err


def test_bad_data_are_refused_and_leave_nothing(user: User) -> None:
    (user.root / "reviews.tsv").write_text("text\tlabel\na film\n")
    answer = user.call("prepare", user.config)
    assert (answer.code, answer.out) == (2, "")
    assert "reviews.tsv:2: 1 fields, expected 2" in answer.err
    assert list((user.root / "prepared").glob("[!.]*")) == []


def test_damaged_prepared_set_is_found_by_its_checksum(user: User) -> None:
    assert user.call("prepare", user.config).code == 0
    (folder,) = (user.root / "prepared").glob("reviews-*")
    column = min(folder.glob("*.bin"))
    content = bytearray(column.read_bytes())
    content[-1] ^= 1
    column.write_bytes(content)
    answer = user.call("prepare", user.config)
    assert answer.code == ExitCode.WRONG_INPUT
    assert answer.out == ""
    assert f"{column} is damaged: its checksum differs" in answer.err


def prepare_without_torch(*arguments: object) -> list[str]:
    """What `stk prepare` prints, and in the last line its exit code and what of torch it has imported."""
    program = (
        "import sys\nfrom slurm.cli import main\ncode = main(sys.argv[1:])\n"
        "print(code, [name for name in ('torch', 'transformers') if name in sys.modules])"
    )
    command = [sys.executable, "-c", program, "prepare", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


def test_data_are_prepared_without_torch(user: User) -> None:
    """So that it answers at once."""
    assert prepare_without_torch(user.config)[-1] == "0 []"
