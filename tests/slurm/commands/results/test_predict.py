"""`stk predict` with a workload from outside: what it predicts, and what it refuses."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from tests.slurm.support.user import CONFIG, Answer, User, reviews
from tests.support.patience import PATIENCE_S
from toolkit.analysis.prediction.load import load_model
from toolkit.errors import CheckpointError, DataError, RunNotFound, UserError
from toolkit.run.run_dir import RunDir


@pytest.fixture(scope="module")
def told(finished: RunDir) -> list[float]:
    """The run's own predictions for the points of its test set."""
    return np.loadtxt(finished.artifacts / "test_predictions.txt").tolist()


@pytest.fixture(scope="module")
def xs() -> list[float]:
    """The points of its test set: the second quarter of the file."""
    return [x / 20 for x in range(15, 30)]


def piped(user: User, text: str, *words: str) -> Answer:
    """`stk predict` with standard input."""
    command = [sys.executable, "-m", "slurm", "predict", *words]
    done = subprocess.run(
        command, cwd=user.root, input=text, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    return Answer(done.returncode, done.stdout, done.stderr)


def refused(answer: Answer, *words: str) -> None:
    assert answer.code == 2, answer.err
    assert answer.err.startswith("error: ")
    assert answer.err.count("\n") == 1
    for word in words:
        assert word in answer.err


def test_piped_json_lines_get_the_predictions_of_the_evaluation(
    user: User, finished: RunDir, told: list[float], xs: list[float]
) -> None:
    rows = "".join(json.dumps({"x": x}) + "\n" for x in xs)
    answer = piped(user, rows, finished.run_id)
    assert answer.code == 0, answer.err
    assert [json.loads(line)["y"] for line in answer.out.splitlines()] == pytest.approx(told)


def test_csv_table_gives_a_csv_table(
    user: User, finished: RunDir, told: list[float], xs: list[float]
) -> None:
    user.write("rows.csv", "name,x\n" + "".join(f'"a\n""b""",{x}\n' for x in xs))
    answer = user.call("predict", finished.run_id, "rows.csv", "--output", "out.csv", "--batch-size", "4")
    assert (answer.code, answer.out) == (0, ""), answer.err
    header, *lines = (user.root / "out.csv").read_text().splitlines()
    assert header == "y"
    assert [float(line) for line in lines] == pytest.approx(told)


def test_a_bad_row_is_named_and_leaves_no_file(user: User, finished: RunDir) -> None:
    user.write("bad.jsonl", '{"x": 1}\n{"y": 2}\n')
    before = user.listing
    answer = user.call("predict", finished.run_id, "bad.jsonl", "--output", "bad.csv", "--batch-size", "1")
    refused(answer, "bad.jsonl:2: found {'y': 2}, expected a number under x")
    assert user.listing == before


@pytest.mark.slow
def test_closed_output_pipe_ends_predict_quietly(user: User, finished: RunDir) -> None:
    rows = user.write("many.jsonl", '{"x": 1}\n' * 20_000)
    process = user.start("predict", finished.run_id, rows)
    assert process.stdout.readline().startswith('{"y"')
    process.stdout.close()
    assert process.wait(PATIENCE_S) == 0
    assert process.stderr.read() == ""


@pytest.mark.slow
def test_predictions_are_written_row_by_row_for_slow_input(user: User, finished: RunDir) -> None:
    command = [sys.executable, "-m", "slurm", "predict", finished.run_id]
    process = subprocess.Popen(
        command, cwd=user.root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    for _ in range(2):
        process.stdin.write('{"x": 1}\n')
        process.stdin.flush()
        assert process.stdout.readline().startswith('{"y"')
    process.stdin.close()
    assert process.wait(PATIENCE_S) == 0


@pytest.mark.parametrize(
    "arguments, word",
    [
        (["nowhere.csv"], "there is no file nowhere.csv"),
        (["points.dat"], "the ending '.dat' does not name a known format"),
        (["points.dat"], "convert the file, or say with --input-format"),
        (["points.txt", "--output", "experiments"], "experiments is a folder, expected the name of a file"),
        (["points.txt", "--output", "nowhere/out.csv"], "cannot write nowhere/out.csv"),
    ],
)
def test_invalid_files_are_refused(user: User, finished: RunDir, arguments: list[str], word: str) -> None:
    refused(user.stk("predict", finished.run_id, *arguments), word)


@pytest.mark.parametrize("rows", ["points.txt", "link.txt"])
@pytest.mark.parametrize("output", ["points.txt", "./points.txt", "here/points.txt"])
def test_the_file_with_the_rows_is_not_replaced(user: User, finished: RunDir, rows: str, output: str) -> None:
    for link, target in (("link.txt", "points.txt"), ("here", ".")):
        (user.root / link).unlink(missing_ok=True)
        (user.root / link).symlink_to(target)
    before = (user.root / "points.txt").read_bytes()
    arguments = (rows, "--input-format", "csv", "--output", output)
    refused(user.stk("predict", finished.run_id, *arguments), f"{output} is the file with the rows")
    assert (user.root / "points.txt").read_bytes() == before


@pytest.mark.parametrize("is_hard", [True, False])
def test_another_link_to_the_rows_may_be_replaced(
    user: User, finished: RunDir, monkeypatch: pytest.MonkeyPatch, is_hard: bool
) -> None:
    link = user.root / "linked.csv"
    link.unlink(missing_ok=True)
    (link.hardlink_to if is_hard else link.symlink_to)(user.root / "points.txt")
    # In place of the program that predicts.
    monkeypatch.setattr(os, "execve", lambda *_: sys.exit(0))
    arguments = ("points.txt", "--input-format", "csv", "--output", link.name)
    assert user.stk("predict", finished.run_id, *arguments).code == 0


def test_a_run_that_has_not_finished_is_refused(user: User, finished: RunDir) -> None:
    (user.experiments / "fresh").mkdir()
    (user.experiments / "fresh" / "config.yaml").write_text(finished.config.read_text())
    refused(user.stk("predict", "fresh", "points.txt"), "fresh has not finished")


def test_error_for_a_task_without_a_predictor_says_what_to_define(user: User) -> None:
    folder = user.experiments / "texts"
    folder.mkdir(parents=True)
    text = "name: texts\ntask: {kind: toy_texts}\nmodel: {kind: convolutions}\ndata: {path: reviews.tsv}\n"
    (folder / "config.yaml").write_text(text)
    refused(user.stk("predict", "texts"), "task.kind toy_texts has no predictor", "TaskSpec(…, predictor=")


def test_model_loads_from_a_moved_folder_without_the_data(
    finished: RunDir, told: list[float], xs: list[float], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    moved = tmp_path / "moved"
    shutil.copytree(finished.path, moved, symlinks=True)
    config = moved / "config.yaml"
    config.write_text(config.read_text().replace("points.txt", "gone.txt"))
    monkeypatch.chdir(tmp_path)
    model = load_model("moved")
    assert not model.training
    assert {parameter.device.type for parameter in model.parameters()} == {"cpu"}
    with torch.no_grad():
        assert model(torch.tensor(xs)).tolist() == pytest.approx(told)
    assert os.getcwd() == str(tmp_path)


@pytest.mark.slow
def test_model_of_a_task_without_a_predictor_loads_only_with_unchanged_data(user: User) -> None:
    texts = user.write("texts.yaml", CONFIG)
    answer = user.call("run", texts)
    assert answer.code == 0, answer.err
    (run,) = user.experiments.glob("tiny-*")
    model = load_model(run)
    weights = load_file(run / "checkpoints" / "best" / "model.safetensors")
    assert all(torch.equal(value, weights[name]) for name, value in model.state_dict().items())
    (user.root / "reviews.tsv").write_text(reviews(200))
    with pytest.raises(DataError, match="have changed since"):
        load_model(run)


def test_missing_damaged_or_unfinished_run_does_not_load(finished: RunDir, tmp_path: Path) -> None:
    with pytest.raises(RunNotFound, match="is not a run's folder"):
        load_model(tmp_path)
    shutil.copytree(finished.path, tmp_path / "run", symlinks=True)
    run = RunDir(tmp_path / "run")
    best = run.best.resolve()
    (best / "model.safetensors").write_bytes(b"damaged")
    with pytest.raises(CheckpointError):
        load_model(run.path)
    shutil.rmtree(best)
    with pytest.raises(CheckpointError, match="is gone: no other file has its weights"):
        load_model(run.path)
    for text in ('{"best": ', "[]"):
        run.result.write_text(text)
        with pytest.raises(UserError, match=r"result\.json is damaged"):
            load_model(run.path)
    run.result.unlink()
    with pytest.raises(UserError, match="has not finished"):
        load_model(run.path)
