"""`stk detect` and `stk correct`: commands of a pipe, with finished runs."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from io import StringIO
from pathlib import Path

import pytest

from tests.slurm.support.user import Answer, User
from tests.toolkit.workloads.moved_run import ended
from tests.toolkit.workloads.spelling.benchmarks.folders import correction_benchmark, word_benchmark
from toolkit.files import read_json
from toolkit.run.run_dir import RunDir
from toolkit.workloads.spelling.benchmarks.layout import find_benchmarks
from toolkit.workloads.spelling.commands.benchmark_runs import predict
from toolkit.workloads.spelling.files import SpellingFiles
from toolkit.workloads.spelling.inference.process_lines import work
from toolkit.workloads.spelling.inference.requests import Request

_STK = (sys.executable, "-m", "slurm")


@pytest.fixture
def here(user: User, monkeypatch: pytest.MonkeyPatch) -> User:
    """Runs the command in this process; it must not be replaced by another process."""

    def become(*given: object) -> None:
        raise AssertionError(f"expected a refusal: {given}")

    monkeypatch.setattr(os, "execve", become)
    return user


@pytest.fixture
def lines(user: User, monkeypatch: pytest.MonkeyPatch, threads_restored: None) -> Callable[..., list[str]]:
    """Runs the command in this process, and what would replace it; returns the lines that it writes."""
    commands: list[list[str]] = []

    def replace(program: str, command: list[str], environment: object) -> None:
        commands.append(command)
        raise SystemExit(0)

    monkeypatch.setattr(os, "execve", replace)

    def call(*words: object) -> list[str]:
        assert user.stk(*words) == Answer(0, "", "")
        run, request = commands[-1][-2:]
        output = StringIO()
        work(RunDir(Path(run)), Request.from_json(request), output)
        return output.getvalue().splitlines()

    return call


Lines = Callable[..., list[str]]


def test_lines_are_answered_in_order(of_words: RunDir, lines: Lines) -> None:
    Path("texts.txt").write_text("the stoen river\n\n  \nover the brigde")
    asked = ("detect", of_words.path, "texts.txt")
    assert lines(*asked) == ["0 1 0", "", "", "0 0 1"]
    assert lines(*asked, "--mark") == ["the [stoen] river", "", "", "over the [brigde]"]
    assert lines(*asked, "--threshold", "1") == ["0 0 0", "", "", "0 0 0"]


def test_an_output_file_may_be_the_input_file(of_words: RunDir, lines: Lines) -> None:
    Path("texts.txt").write_text("the stoen\nover\n")
    assert lines("detect", of_words.path, "texts.txt", "--output", "texts.txt") == []
    assert Path("texts.txt").read_text() == "0 1\n0\n"


def test_detections_can_be_handed_to_the_correction(
    of_words: RunDir, of_word_corrections: RunDir, lines: Lines
) -> None:
    Path("texts.txt").write_text("the stoen river\n\nover the brigde\n")
    with_text = lines("detect", of_words.path, "texts.txt", "--with-text")
    assert with_text == ["the stoen river\t0 1 0", "\t", "over the brigde\t0 0 1"]
    Path("detected.txt").write_text("".join(f"{line}\n" for line in with_text))
    made = lines("correct", of_word_corrections.path, "detected.txt", "--detected")
    assert len(made) == 3
    assert made[0].split()[0] == "the"
    assert made[0].split()[-1] == "river"
    assert made[0] != "the stoen river"
    assert made[1] == ""
    assert made[2].split()[:2] == ["over", "the"]


def test_detections_may_be_in_a_separate_file(of_word_corrections: RunDir, lines: Lines) -> None:
    Path("texts.txt").write_text("the stoen river\nover the brigde\n")
    Path("labels.txt").write_text("0 0 0\n0\n")
    found = lines("correct", of_word_corrections.path, "texts.txt", "--detections", "labels.txt")
    assert found == ["the stoen river", "over the brigde"]


@pytest.mark.slow
def test_detections_from_standard_input_are_used_until_they_do_not_fit(
    of_word_corrections: RunDir, tmp_path: Path
) -> None:
    (tmp_path / "texts.txt").write_text("the stoen river\nover the brigde\n")
    words = ("correct", of_word_corrections.path, "texts.txt", "--detections", "-")
    answer = ended(*words, cwd=tmp_path, input="0 0 0\n")
    assert (answer.returncode, answer.stdout) == (2, "the stoen river\n")
    said = "standard input: found 1 lines, expected one for each of texts.txt, which has more"
    assert answer.stderr == f"error: {said}\n"


@pytest.mark.slow
def test_a_command_ends_without_an_error_if_its_reader_stops(of_words: RunDir, tmp_path: Path) -> None:
    (tmp_path / "texts.txt").write_text("the stoen river\n" * 20_000)
    command = [*_STK, "detect", str(of_words.path), str(tmp_path / "texts.txt")]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout
        assert process.stderr
        assert process.stdout.readline() == "0 1 0\n"
        process.stdout.close()
        assert process.wait() == 0
        assert process.stderr.read() == ""


@pytest.mark.slow
def test_a_line_is_answered_before_the_next_line_arrives_and_ctrl_c_ends_the_command_with_130(
    of_words: RunDir,
) -> None:
    # Tests that run in the background of a shell ignore Ctrl-C, and so would their subprocesses.
    command = ["env", "--default-signal=INT", *_STK, "detect", str(of_words.path)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin
        assert process.stdout
        assert process.stderr
        for line, labels in (("the stoen", "0 1"), ("over", "0")):
            process.stdin.write(f"{line}\n")
            process.stdin.flush()
            assert process.stdout.readline() == f"{labels}\n"
        os.kill(process.pid, 2)
        assert process.wait() == 130
        assert process.stderr.read() == ""


@pytest.mark.parametrize(
    "words, told",
    [
        (("detect", "CORRECTS"), "is a run of sec_nmt, which detects no errors: expected one of"),
        (("correct", "DETECTS"), "is a run of sed_words, which corrects no texts: expected one of"),
        (("detect", "DETECTS", "no.txt"), "there is no file no.txt"),
        (("detect", "unknown"), "no run 'unknown'"),
        (("detect", "DETECTS", "--threshold", "2"), "--threshold is 2: it is a probability"),
        (("detect", "DETECTS", "--batch-tokens", "0"), "--batch-tokens is 0: it must be at least 1"),
        (("correct", "CORRECTS", "--beam-width", "0"), "--beam-width is 0: it must be at least 1"),
        (("correct", "CORRECTS", "--beam-width", "3"), "the search is greedy: add --search beam"),
        (("correct", "CORRECTS", "--detections", "-"), "give the lines in a FILE"),
    ],
)
def test_invalid_arguments_are_refused_before_a_model_is_loaded(
    of_words: RunDir, of_corrections: RunDir, here: User, words: tuple[str, ...], told: str
) -> None:
    runs = {"DETECTS": of_words.path, "CORRECTS": of_corrections.path}
    answer = here.stk(*(runs.get(word, word) for word in words))
    assert answer.code == 2
    assert told in answer.err
    assert "Traceback" not in answer.err


@pytest.mark.slow
def test_runs_are_scored_beside_the_predictions_of_a_benchmark(
    of_words: RunDir, of_word_corrections: RunDir, user: User
) -> None:
    for benchmark in (word_benchmark, correction_benchmark):
        benchmark(user.root / "bench")
    asked = ("evaluate", of_words.path, of_word_corrections.path, "--benchmark", "bench", "--json")
    first = user.stk(*asked)
    assert first.code == 0, first.err
    assert f"run 1 of 2: {of_words.run_id} on sed_words/" in first.err
    rows = {(each["kind"], each["model"]) for each in json.loads(first.out)["results"]}
    assert rows == {
        ("sed_words", "half"), ("sed_words", of_words.run_id), ("sed_words", of_word_corrections.run_id),
        ("sec", "right"), ("sec", "idle_1"), ("sec", of_word_corrections.run_id),
    }  # fmt: skip
    kept = SpellingFiles(of_word_corrections).benchmark_predictions("sec", "neuspell", "jfleg")
    assert len(kept.read_text(encoding="utf-8").splitlines()) == 3
    assert read_json(kept.with_suffix(".json"))["form"] == "text"
    # Predictions are kept for the same texts and weights.
    kept.write_text("the cat sat\na dog\nfine\n", encoding="utf-8")
    answer = user.stk(*asked)
    assert " of 2: " not in answer.err
    again = json.loads(answer.out)["results"]
    (mine,) = [each for each in again if (each["kind"], each["model"]) == ("sec", of_word_corrections.run_id)]
    assert mine["metrics"]["f1"] == 1.0


def test_predictions_for_other_texts_are_not_kept_after_a_failure(of_words: RunDir, tmp_path: Path) -> None:
    """The copied run has no predictions of other tests."""
    kept = shutil.ignore_patterns("benchmarks")
    run = RunDir(shutil.copytree(of_words.path, tmp_path / "run", symlinks=True, ignore=kept))
    first, second = (find_benchmarks(word_benchmark(tmp_path / name)) for name in ("first", "second"))
    second[0].corrupt.write_text("a\nb\nc\n", encoding="utf-8")
    (found, unused) = predict([run], first, _Writes("0 0 0"), lambda line: None)
    (file,) = found[first[0]].values()
    assert (file.read_text(), unused) == ("0 0 0", [])
    _, unused = predict([run], second, _Writes("1", code=1), lambda line: None)
    assert (file.read_text(), len(unused)) == ("1", 1)
    assert predict([run], first, _Writes("0 1 0"), lambda line: None)[1] == []
    assert file.read_text() == "0 1 0"


class _Writes:
    """A host whose processes write this text for each job and end with this code."""

    def __init__(self, text: str, code: int = 0) -> None:
        self._code = f"""\
import json, pathlib, sys
for job in json.loads(sys.argv[1])["jobs"]:
    pathlib.Path(job["output"]).parent.mkdir(parents=True, exist_ok=True)
    pathlib.Path(job["output"]).write_text({text!r})
sys.exit({code})
"""

    def find_run(self, name: str) -> Path:
        return Path(name)

    def process(self, run: Path, module: str, request: str, *more: str) -> tuple[list[str], dict[str, str]]:
        return [sys.executable, "-c", self._code, request], {}


@pytest.mark.slow
def test_a_run_that_cannot_be_scored_does_not_affect_the_others(
    of_words: RunDir, of_word_corrections: RunDir, user: User, tmp_path: Path
) -> None:
    word_benchmark(tmp_path / "bench")
    unfinished = RunDir(shutil.copytree(of_word_corrections.path, tmp_path / "under-way", symlinks=True))
    unfinished.result.unlink()
    damaged = RunDir(shutil.copytree(of_word_corrections.path, tmp_path / "damaged", symlinks=True))
    shutil.rmtree(damaged.checkpoint(read_json(damaged.result)["best"]["step"]))
    runs = (unfinished.path, damaged.path, of_words.path)
    answer = user.stk("evaluate", *runs, "--benchmark", "bench", "--markdown", "all.md", "--json")
    assert answer.code == 4, answer.err
    told = json.loads(answer.out)
    assert {each["model"] for each in told["results"]} == {"half", of_words.run_id}
    assert [each.split()[0] for each in told["unscored"]] == ["under-way", "damaged"]
    assert "error: under-way has not finished" in answer.err
    assert of_words.run_id in Path("all.md").read_text(encoding="utf-8")


def test_tables_of_an_earlier_call_stay_if_there_are_no_results(
    of_words: RunDir, user: User, tmp_path: Path
) -> None:
    folder = word_benchmark(tmp_path / "bench")
    (tmp_path / "bench" / "sed_words" / "results" / "wiki" / "realistic" / "half.txt").unlink()
    run = RunDir(shutil.copytree(of_words.path, tmp_path / "under-way", symlinks=True))
    run.result.unlink()
    Path("all.md").write_text("of yesterday", encoding="utf-8")
    assert user.stk("evaluate", run.path, "--benchmark", folder, "--markdown", "all.md").code == 4
    assert Path("all.md").read_text(encoding="utf-8") == "of yesterday"


def test_a_run_without_a_benchmark_of_its_kind_is_refused(of_words: RunDir, user: User) -> None:
    correction_benchmark(user.root / "bench")
    answer = user.stk("evaluate", of_words.path, "--benchmark", "bench")
    assert answer.code == 2
    assert "which is for benchmarks of sed_words, sed_sequence: found sec" in answer.err
