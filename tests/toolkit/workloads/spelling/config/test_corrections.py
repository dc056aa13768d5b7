"""Experiments of the correction of spelling errors: what fits together."""

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
def test_a_correction_is_looked_for_greedily_unless_asked_otherwise(kind):
    assert check(correction(kind)).task.search == "greedy"


@pytest.mark.parametrize("kind", KINDS)
def test_what_writes_needs_a_tokenizer(kind, faults):
    (fault,) = faults(check, correction(kind, output_tokenizer_path=None))
    assert fault.key == "data.output_tokenizer_path"
    assert fault.problem == f"found none, but {kind} writes texts"


@pytest.mark.parametrize("kind", KINDS)
def test_texts_are_no_longer_than_the_model_reads(kind, faults):
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
def test_words_are_not_corrected_one_by_one_where_white_space_changes(noise, faults):
    check(correction("sec_nmt", noise=noise))
    (fault,) = faults(check, correction("sec_words_nmt", noise=noise))
    assert fault.key == "data.noise"


def test_a_package_that_is_missing_is_told_with_its_extra_before_anything_starts(
    faults, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setitem(sys.modules, "rapidfuzz", None)
    (fault,) = faults(check, correction("sec_nmt"))
    assert fault.key == "task.kind"
    assert "rapidfuzz" in fault.problem
    assert "slurm-toolkit[spelling]" in fault.hint


def test_the_extra_of_a_package_is_told_by_whoever_registers_workloads():
    assert extra_with("symspellpy") == "slurm-toolkit[spelling]"
    # Whoever has the distribution has the first; of the second only the beginning is right.
    assert extra_with("numpy") == extra_with("symspell") == ""
