"""Experiments with correction of spelling errors: which keys fit together."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from toolkit.config import check
from toolkit.registry import extra_with

KINDS = {"sec_nmt": "nmt", "sec_words_nmt": "words_nmt"}


def correction(kind: str, **data: Any) -> dict[str, Any]:
    known = {"datasets": ["a.txt"], "tokenizer_path": "bpe.json", "output_tokenizer_path": "bpe.json"}
    return {"name": "a", "task": {"kind": kind}, "model": {"kind": KINDS[kind]}, "data": known | data}


@pytest.mark.parametrize("kind", KINDS)
def test_the_width_of_a_beam_is_refused_without_a_beam(kind, faults):
    tree = correction(kind)
    tree["task"]["beam_width"] = 10
    (fault,) = faults(check, tree)
    assert (fault.key, fault.problem) == ("task.beam_width", "found 10, but task.search greedy has no beam")
    # Runs of earlier versions may have recorded it.
    assert check(tree, is_stored=True).task.beam_width == 10
    tree["task"]["search"] = "beam"
    assert check(tree).task.beam_width == 10


@pytest.mark.parametrize("kind", KINDS)
def test_correction_task_needs_an_output_tokenizer(kind, faults):
    (fault,) = faults(check, correction(kind, output_tokenizer_path=None))
    assert fault.key == "data.output_tokenizer_path"
    assert fault.problem == f"found none, but {kind} writes texts"


@pytest.mark.parametrize("kind", KINDS)
def test_texts_must_not_be_longer_than_the_model_reads(kind, faults):
    tree = correction(kind, max_length=600)
    (fault,) = faults(check, tree)
    assert fault.key == "data.max_length"
    assert "model.max_input_length" in fault.problem
    tree["model"]["max_input_length"] = 600
    check(tree)


@pytest.mark.parametrize(
    "noise",
    [
        {"kind": "whitespace"},
        {"kind": "chained", "steps": ["artificial", {"kind": "switch", "choices": ["none", "whitespace"]}]},
    ],
)
def test_noise_that_changes_white_space_is_refused_for_correction_word_by_word(noise, faults):
    check(correction("sec_nmt", noise=noise))
    (fault,) = faults(check, correction("sec_words_nmt", noise=noise))
    assert fault.key == "data.noise"


def test_a_missing_package_is_named_with_its_extra_before_anything_starts(
    faults, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setitem(sys.modules, "rapidfuzz", None)
    (fault,) = faults(check, correction("sec_nmt"))
    assert fault.key == "task.kind"
    assert "rapidfuzz" in fault.problem
    assert "slurm-toolkit[spelling]" in fault.hint


def test_the_extra_of_a_package_is_found_in_the_metadata_of_distributions():
    assert extra_with("symspellpy") == "slurm-toolkit[spelling]"
    # numpy is always installed; symspell is only the beginning of a package's name.
    assert extra_with("numpy") == extra_with("symspell") == ""
