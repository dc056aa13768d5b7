"""Several files for one model."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from tests.toolkit.spelling_use.runs import texts_of_test
from toolkit.rundir import RunDir
from toolkit.spelling_use.correcting import Corrector
from toolkit.spelling_use.forms import OF_TEXTS
from toolkit.spelling_use.requests import Job, Request
from toolkit.spelling_use.work import work

pytestmark = pytest.mark.usefixtures("threads_restored")


def test_texts_that_several_benchmarks_share_are_corrected_once(
    of_word_corrections: RunDir, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[list[str]] = []
    correct = Corrector.correct

    def counted(self: Corrector, texts: list[str], labels: None) -> list[str]:
        asked.append(texts)
        return correct(self, texts, labels)

    monkeypatch.setattr(Corrector, "correct", counted)
    texts = texts_of_test(of_word_corrections)
    (tmp_path / "corrupt.txt").write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    forms = ("text", "changed", "any_change")
    jobs = tuple(
        Job(input=str(tmp_path / "corrupt.txt"), output=str(tmp_path / form), form=form) for form in forms
    )
    work(of_word_corrections, Request(jobs=jobs, device="cpu"), io.StringIO())
    assert asked == [texts]
    made, *others = ((tmp_path / form).read_text(encoding="utf-8").splitlines() for form in forms)
    for form, lines in zip(forms[1:], others, strict=True):
        assert lines == [OF_TEXTS[form](*each) for each in zip(texts, made, strict=True)]
