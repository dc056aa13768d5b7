"""`stk evaluate` on a finished run: its tables, its document, and what it refuses."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from slurm.commands.parser import make_parser
from slurm.commands.results.evaluate import _request
from tests.slurm.support.user import User, user_in
from tests.support.mounts import read_only
from toolkit.files import read_json
from toolkit.run.run_dir import RunDir


@pytest.fixture(scope="module")
def user(tmp_path_factory: pytest.TempPathFactory) -> Iterator[User]:
    """One working folder, without Slurm, in which a run is trained once."""
    with user_in(tmp_path_factory.mktemp("user")) as user:
        user.write("other.tsv", "body\tverdict\nfine movie\tgood\nawful scene\tbad\nso so\tmeh\n")
        yield user


@pytest.fixture(scope="module")
def finished(user: User) -> RunDir:
    answer = user.call("run", user.config, "train.epochs=3")
    assert answer.code == 0, answer.err
    return user.run("train.epochs=3")


COLUMNS = ("data.text_column=body", "data.label_column=verdict")


def test_second_evaluation_finds_the_scores_of_the_first(user: User, finished: RunDir) -> None:
    first = json.loads(user.stk("evaluate", finished.run_id, "--json").out)
    assert first["metrics"]["test"] == read_json(finished.result)["metrics"]["test"]
    assert (first["run_id"], first["found"]) == (finished.run_id, False)
    again = json.loads(user.stk("evaluate", finished.run_id, "--json").out)
    assert again == {**first, "found": True}


@pytest.mark.slow
def test_evaluation_of_another_file_shows_scores_and_left_out_rows(user: User, finished: RunDir) -> None:
    answer = user.stk("evaluate", finished.run_id, "--data", "other.tsv", *COLUMNS)
    assert answer.code == 0, answer.err
    assert re.search("state +evaluated", answer.out)
    told = re.search(r"scored +(other.tsv, 2 samples, with the best weights of .*\S) +│", answer.out)
    assert told
    assert told[1].endswith(finished.run_id)
    assert re.search("label +predicted +samples", answer.out)
    assert "left out: 1 with another label" in answer.out
    (line,) = [line for line in answer.out.splitlines() if line.startswith("scored  ")]
    folder = RunDir(Path(line.removeprefix("scored  ")))
    assert folder.path.name.startswith("other-")
    assert folder.report_html.exists()
    assert (folder.artifacts / "test_predictions.tsv").exists()
    assert "evaluated" in user.stk("report", folder.path).out
    assert "scored before  " in user.stk("evaluate", finished.run_id, "--data", "other.tsv", *COLUMNS).out


@pytest.mark.slow
def test_error_is_shown_once_with_several_processes(user: User, finished: RunDir) -> None:
    answer = user.call("evaluate", finished.run_id, "--procs", "2", "--split", "dev")
    assert (answer.code, answer.err.count("error:")) == (2, 1)
    assert "no split 'dev': its data have train, validation, test" in answer.err
    assert "Traceback" not in answer.err


def test_missing_column_is_refused_with_the_found_columns(user: User, finished: RunDir) -> None:
    said = user.refused("evaluate", finished.run_id, "--data", "other.tsv")
    assert "no column 'text', found: body, verdict" in said
    assert "Set data.text_column" in said


@pytest.mark.parametrize(
    "arguments, word",
    [
        (["train.epochs=9"], "leave out train.epochs=9"),
        (["--data", "other.tsv", "--split", "test"], "leave one of them out"),
        (["--data", "nowhere.csv"], "nowhere.csv"),
        (["--data", "other.tsv", *COLUMNS, "train.epochs=9"], "train.epochs: is fixed by the run"),
        (["--procs", "0"], "--procs is 0"),
    ],
)
def test_bad_arguments_are_refused(user: User, finished: RunDir, arguments: list[str], word: str) -> None:
    assert word in user.refused("evaluate", finished.run_id, *arguments)


def test_a_run_that_has_not_finished_is_refused(user: User, finished: RunDir) -> None:
    (user.experiments / "fresh").mkdir()
    (user.experiments / "fresh" / "config.yaml").write_text(finished.config.read_text())
    assert "fresh has not finished" in user.refused("evaluate", "fresh")


def test_a_home_folder_behind_an_equals_sign_is_that_folder(
    finished: RunDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/home/ada")
    arguments = make_parser(["evaluate"]).parse_args(["evaluate", finished.run_id, "--output=~/scores"])
    assert _request(finished, arguments)["output"] == "/home/ada/scores"


@pytest.mark.slow
def test_a_run_in_a_read_only_folder_is_scored_elsewhere(
    user: User, finished: RunDir, tmp_path: Path
) -> None:
    asked = ("evaluate", finished.run_id, "--split", "validation")
    with read_only(finished.path):
        refused = user.call(*asked)
        assert (refused.code, "Traceback" in refused.err) == (2, False)
        assert str(finished.path) in refused.err
        assert "--output" in refused.err
        answer = user.call(*asked, "--output", tmp_path / "scores", "--json")
        assert answer.code == 0, answer.err
        assert json.loads(answer.out)["folder"] == str(tmp_path / "scores")
    assert not finished.failure.exists()


@pytest.mark.slow
def test_an_evaluation_in_a_read_only_folder_is_shown_with_and_without_its_page(
    user: User, finished: RunDir
) -> None:
    folder = Path(json.loads(user.stk("evaluate", finished.run_id, "--json").out)["folder"])
    for prepare in (lambda: None, RunDir(folder).report_html.unlink):
        prepare()
        with read_only(finished.path):
            answer = user.call("evaluate", finished.run_id)
        assert (answer.code, "Traceback" in answer.err) == (0, False), answer.err
        assert f"scored before  {folder}" in answer.out
    assert str(folder) in answer.err, "the page, which is missing now, could not be written"


def test_a_report_in_a_read_only_folder_is_shown_and_says_that_its_pages_are_not_written(
    user: User, finished: RunDir
) -> None:
    with read_only(finished.path):
        answer = user.call("report", finished.run_id)
    assert (answer.code, "Traceback" in answer.err) == (0, False), answer.err
    assert "finished" in answer.out
    assert str(finished.path) in answer.err


@pytest.mark.slow
def test_run_older_than_the_command_is_scored_by_the_installed_code(user: User, finished: RunDir) -> None:
    module = finished.code / "toolkit" / "analysis" / "reevaluate.py"
    kept = module.rename(module.with_suffix(".kept"))
    try:
        answer = user.call("evaluate", finished.run_id, "--split", "train", "--json")
    finally:
        kept.rename(module)
    assert answer.code == 0, answer.err
    assert json.loads(answer.out)["samples"] == 96
