"""Several files for one model, and labels in a second file."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from tests.toolkit.workloads.spelling.inference.conftest import texts_of_test
from tests.toolkit.workloads.spelling.spelling_files import write_texts
from toolkit.errors import DataError
from toolkit.run.run_dir import RunDir
from toolkit.workloads.spelling.inference.correcting import Corrector
from toolkit.workloads.spelling.inference.output_formats import OF_TEXTS
from toolkit.workloads.spelling.inference.process_lines import work
from toolkit.workloads.spelling.inference.requests import Job, Request


@pytest.fixture(autouse=True)
def working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_texts_of_several_jobs_are_corrected_only_once(
    of_word_corrections: RunDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[list[str]] = []
    correct = Corrector.correct

    def counted(self: Corrector, texts: list[str], labels: None) -> list[str]:
        asked.append(texts)
        return correct(self, texts, labels)

    monkeypatch.setattr(Corrector, "correct", counted)
    texts = texts_of_test(of_word_corrections)
    write_texts(Path("corrupt.txt"), texts)
    forms = ("text", "changed", "any_change")
    jobs = tuple(Job(input="corrupt.txt", output=form, form=form) for form in forms)
    work(of_word_corrections, Request(jobs=jobs, device="cpu"), io.StringIO())
    assert asked == [texts]
    made, *others = (Path(form).read_text(encoding="utf-8").splitlines() for form in forms)
    for form, lines in zip(forms[1:], others, strict=True):
        assert lines == [OF_TEXTS[form](*each) for each in zip(texts, made, strict=True)]


@pytest.mark.parametrize(
    "texts, labels, told",
    [
        (b"the\nst\xffoen\n", None, "texts.txt:2: byte 3 is not UTF-8; save the file as UTF-8"),
        (
            b"the\n",
            "0\n0\n",
            "labels.txt: found more lines than texts.txt has, expected one for each of them",
        ),
    ],
)
def test_files_are_checked_before_a_model_is_loaded_for_an_output_file(
    texts: bytes, labels: str | None, told: str
) -> None:
    Path("texts.txt").write_bytes(texts)
    if labels is not None:
        Path("labels.txt").write_text(labels)
    detections = None if labels is None else "labels.txt"
    job = Job(input="texts.txt", output="made.txt", form="text", detections=detections)
    with pytest.raises(DataError) as refused:
        work(RunDir(Path("without a model")), Request(jobs=(job,), device="cpu"), io.StringIO())
    assert str(refused.value) == told
    assert not Path("made.txt").exists()


@pytest.mark.parametrize(
    "labels, told, answered",
    [
        ("0 0\n0\n", "labels.txt:1: found 2 labels, expected 3: one for each word, or one for the text", 0),
        ("0 0 0\n", "labels.txt: found 1 lines, expected one for each of texts.txt, which has more", 1),
        ("0 7 0\n0\n", "labels.txt:1: found '7', expected 0 (right) and 1 (wrong) only", 0),
        ("0\n0 7 0\n", "labels.txt:2: found '7', expected 0 (right) and 1 (wrong) only", 1),
        ("0\n0\n0\n", "labels.txt: found more lines than texts.txt has, expected one for each of them", 2),
    ],
)
def test_labels_that_do_not_fit_the_texts_are_refused_after_the_lines_before_them(
    of_word_corrections: RunDir, labels: str, told: str, answered: int
) -> None:
    Path("texts.txt").write_text("the stoen river\nover the brigde\n")
    Path("labels.txt").write_text(labels)
    job, output = Job(input="texts.txt", form="text", detections="labels.txt"), io.StringIO()
    with pytest.raises(DataError) as refused:
        work(of_word_corrections, Request(jobs=(job,), device="cpu"), output)
    assert str(refused.value) == told
    assert output.getvalue().count("\n") == answered


def test_lines_before_one_without_labels_are_answered(of_word_corrections: RunDir) -> None:
    Path("detected.txt").write_text("the stoen river\t0 1 0\nover the brigde\nthe river\t0 0\n")
    job, output = Job(input="detected.txt", form="text", detected=True), io.StringIO()
    with pytest.raises(DataError, match=r"detected\.txt:2: found no tab"):
        work(of_word_corrections, Request(jobs=(job,), device="cpu"), output)
    assert output.getvalue().count("\n") == 1
