"""`stk evaluate` without a run: folders of benchmarks, and single predictions."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from slurm.cli import main
from tests.toolkit.workloads.spelling.benchmarks.folders import (
    correction_benchmark,
    word_benchmark,
    write_lines,
)

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path / "bench"


def evaluate(*words: object) -> int:
    return main(["evaluate", *map(str, words)])


Scored = Callable[..., dict[tuple[str, str], dict[str, float]]]


@pytest.fixture
def scored(root: Path, capsys: Capture) -> Scored:
    """Scores the folder with these options; returns the metrics by kind and model."""

    def metrics(*options: object) -> dict[tuple[str, str], dict[str, float]]:
        assert evaluate("--benchmark", root, "--json", *options) == 0
        results = json.loads(capsys.readouterr().out)["results"]
        return {(each["kind"], each["model"]): each["metrics"] for each in results}

    return metrics


def test_all_models_are_in_tables(root: Path, capsys: Capture) -> None:
    correction_benchmark(root)
    word_benchmark(root)
    assert evaluate("--benchmark", "bench", "--markdown", "all.md", "--latex", "all.tex") == 0
    told = capsys.readouterr()
    assert told.err == ""
    assert re.search(r"right +100\.00", told.out)
    assert "Errors in words (sed_words): F1, %" in told.out
    # Other metrics are only in the files.
    assert "Recall" not in told.out
    assert "Corrections (sec): Recall, %" in Path("all.md").read_text(encoding="utf-8")
    assert r"right & \textbf{100.00} \\" in Path("all.tex").read_text(encoding="utf-8")
    assert told.out.endswith("wrote all.md\nwrote all.tex\n")


def test_a_missing_package_is_named_with_its_extra(root: Path) -> None:
    hidden = "import sys; sys.modules['symspellpy'] = None; from slurm.cli import main; sys.exit(main())"
    words = ("evaluate", "--benchmark", str(correction_benchmark(root)), "--baselines")
    answer = subprocess.run(
        [sys.executable, "-c", hidden, *words], capture_output=True, text=True, check=False
    )
    assert answer.returncode == 2
    assert "pip install 'slurm-toolkit[spelling]'" in answer.stderr
    assert "Traceback" not in answer.stderr


def test_an_empty_dictionary_has_no_words(root: Path, scored: Scored) -> None:
    word_benchmark(root)
    found = scored("--baselines", "--dictionary", write_lines(root / "words.txt"))
    # All six words are called wrong, and two are.
    assert found["sed_words", "out of dictionary (baseline)"]["precision"] == pytest.approx(2 / 6)


def test_every_model_and_baseline_is_scored_on_every_benchmark(root: Path, scored: Scored) -> None:
    correction_benchmark(root)
    word_benchmark(root)
    words = write_lines(root / "words.txt", "the\t9", "cat\t3", "sat\t2", "a\t9", "dog\t2", "fine\t2")
    found = scored("--baselines", "--dictionary", words)
    assert {model: metrics["f1"] for model, metrics in found.items()} == {
        ("sed_words", "half"): pytest.approx(2 / 3),
        ("sed_words", "out of dictionary (baseline)"): 1.0,
        ("sec", "right"): 1.0,
        ("sec", "idle_1"): 0.0,
        ("sec", "symspell (baseline)"): 1.0,
        ("sec", "do nothing (baseline)"): 0.0,
    }
    # A dictionary also separates errors that are words.
    assert found["sed_words", "half"]["non_word_rate"] == 0.5


def test_invalid_predictions_are_reported_and_the_others_are_scored(root: Path, capsys: Capture) -> None:
    folder = correction_benchmark(root)
    write_lines(folder / "predictions" / "short.txt", "the cat sat")
    write_lines(folder / "predictions" / "long.txt", *["the cat sat"] * 4)
    assert evaluate("--benchmark", root) == 2
    told = capsys.readouterr()
    assert re.search(r"right +100\.00", told.out)
    assert "short" not in told.out
    assert [line.partition("predictions/")[2] for line in told.err.splitlines()] == [
        "long.txt: found 4 lines, expected 3, as many as the input has",
        "short.txt: found 1 lines, expected 3, as many as the input has",
    ]


def test_json_has_results_and_faults(root: Path, capsys: Capture) -> None:
    folder = word_benchmark(root)
    write_lines(folder / "predictions" / "odd.txt", "1 0 7", "0 1", "0")
    assert evaluate("--benchmark", root, "--json") == 2
    told = json.loads(capsys.readouterr().out)
    ((found, metrics),) = ((each, each.pop("metrics")) for each in told["results"])
    assert found == {"kind": "sed_words", "group": "wiki", "split": "realistic", "model": "half"}
    assert metrics["recall"] == 0.5
    assert "odd.txt:1: found '7'" in told["faults"][0]


def test_folder_without_predictions_is_refused_with_the_expected_place(root: Path, capsys: Capture) -> None:
    folder = word_benchmark(root)
    (root / "sed_words" / "results" / "wiki" / "realistic" / "half.txt").unlink()
    assert evaluate("--benchmark", root) == 2
    told = capsys.readouterr().err
    assert f"no predictions; expected predictions/MODEL.txt beside {folder / 'corrupt.txt'}" in told


def test_tables_that_cannot_be_written_are_an_error(root: Path, capsys: Capture) -> None:
    word_benchmark(root)
    assert evaluate("--benchmark", root, "--markdown", "no/such/folder.md") == 2
    told = capsys.readouterr()
    assert "no/such/folder.md cannot be written: No such file" in told.err
    assert re.search(r"half +66\.67", told.out)


def single(folder: Path, prediction: str, *more: object) -> int:
    files = ("--input", folder / "corrupt.txt", "--gold", folder / "correct.txt")
    return evaluate("--kind", "sec", *files, "--prediction", folder / "predictions" / prediction, *more)


def test_the_metrics_of_a_single_prediction_are_lines(root: Path, capsys: Capture) -> None:
    assert single(correction_benchmark(root), "right.txt") == 0
    assert capsys.readouterr().out.splitlines() == [
        "Correction F1: 100.00 (Precision: 100.00 %, Recall: 100.00 %)",
        "Mean F1 of a line: 100.00 %",
        "Mean normalised edit distance: 0.0000",
    ]


def test_the_metrics_of_predicted_labels_are_lines(root: Path, capsys: Capture) -> None:
    folder = word_benchmark(root)
    files = ("--input", folder / "corrupt.txt", "--gold", folder / "correct.txt")
    half = root / "sed_words" / "results" / "wiki" / "realistic" / "half.txt"
    assert evaluate("--kind", "sed_words", *files, "--prediction", half) == 0
    assert capsys.readouterr().out.splitlines() == [
        "F1: 66.67 (Precision: 100.00 %, Recall: 50.00 %)",
        "Word accuracy: 83.33 %",
    ]


def test_case_is_ignored_in_the_lines_that_a_file_marks(root: Path, capsys: Capture) -> None:
    folder = correction_benchmark(root)
    write_lines(folder / "predictions" / "loud.txt", "THE CAT SAT", "a dog", "FINE")
    flags = write_lines(root / "flags.txt", "1", "0", "1")
    assert single(folder, "loud.txt", "--lowercase-file", flags) == 0
    assert "Correction F1: 100.00 " in capsys.readouterr().out
    write_lines(flags, "1", "0", "maybe")
    assert single(folder, "loud.txt", "--lowercase-file", flags) == 2
    assert "flags.txt:3: found 'maybe', expected 0" in capsys.readouterr().err


def test_lowercase_ignores_case_in_all_lines(root: Path, scored: Scored, capsys: Capture) -> None:
    folder = correction_benchmark(root, "bea322")
    write_lines(folder / "predictions" / "loud.txt", "The cat sat", "A dog", "FINE")
    found, lower = scored(), scored("--lowercase")
    loud = found.pop(("sec", "loud"))
    assert loud["f1"] < 1
    # Predictions in lower case keep their scores.
    assert lower == found | {("sec", "loud"): found["sec", "right"]}
    assert single(folder, "loud.txt", "--lowercase", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert told == {"kind": "sec", "lines": 3, "metrics": found["sec", "right"]}


def test_lowercase_does_not_change_labels(root: Path, scored: Scored) -> None:
    word_benchmark(root)
    assert scored() == scored("--lowercase")


def test_lowercase_is_refused_with_a_lowercase_file_or_a_run(root: Path, capsys: Capture) -> None:
    flags = write_lines(root / "flags.txt", "1", "0", "1")
    assert single(correction_benchmark(root), "right.txt", "--lowercase", "--lowercase-file", flags) == 2
    assert "--lowercase-file" in capsys.readouterr().err
    # Without a benchmark there are no texts to convert to lower case.
    assert evaluate("run-1a2b3c4d", "--lowercase") == 2
    assert "--lowercase" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words, told",
    [
        ((), "nothing to score: give a RUN or --benchmark or --kind"),
        (("--kind", "sec", "--input", "a"), "--kind sec also needs --gold, --prediction"),
        (("some-run", "--benchmark", "b", "--split", "c"), "--benchmark does not go with --split: leave one"),
        (("--benchmark", "b", "--gold", "c"), "--benchmark does not go with --gold"),
        (("--benchmark", "b", "--data", "c"), "--benchmark does not go with --data"),
        (("some-run", "--dictionary", "c"), "RUN does not go with --dictionary"),
        (("--data", "c"), "nothing to score"),
        (("--benchmark", "b"), "b is not a folder"),
    ],
)
def test_options_that_do_not_fit_together_are_refused(
    words: tuple[str, ...], told: str, root: Path, capsys: Capture
) -> None:
    assert evaluate(*words) == 2
    assert told in capsys.readouterr().err
