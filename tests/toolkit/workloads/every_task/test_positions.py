"""Samples, tokens and labels that do not fit a pretrained model are refused before anything is started."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.toolkit.precheck.test_warm_start import refusal
from tests.toolkit.workloads.entity_disambiguation.entity_files import tiny_co_mention, tiny_entities
from tests.toolkit.workloads.text_classification.tiny_texts import tiny_bert
from toolkit.config import Experiment
from toolkit.data.prepared.lookup import find_prepared_set, read_meta
from toolkit.errors import DataError
from toolkit.precheck.check_inputs import check_inputs, input_violations
from toolkit.task import task_class


def test_samples_longer_than_the_model_reads_are_refused(tmp_path: Path) -> None:
    """The tiny BERT has 128 positions."""
    check_inputs(tiny_bert(tmp_path, "data.max_tokens=128"))
    told = refusal(tiny_bert(tmp_path, "data.max_tokens=129"))
    assert all(part in told for part in ("data.max_tokens", "129", "128"))


def test_max_tokens_must_leave_room_beside_the_special_tokens(tmp_path: Path) -> None:
    """The tokenizer puts one token before a text, and one behind it."""
    check_inputs(tiny_bert(tmp_path, "data.max_tokens=3"))
    told = refusal(tiny_bert(tmp_path, "data.max_tokens=2"))
    assert all(part in told for part in ("data.max_tokens is 2", "at least 3"))


@pytest.mark.parametrize("make, key", [(tiny_bert, "model.layers"), (tiny_co_mention, "model.entity_layers")])
def test_more_layers_than_a_model_has_are_refused(tmp_path: Path, make: Any, key: str) -> None:
    settings = json.loads((Path(make(tmp_path).model.path) / "config.json").read_text())
    present = settings["num_hidden_layers"]
    check_inputs(make(tmp_path, f"{key}={present}"))
    told = refusal(make(tmp_path, f"{key}={present + 1}"))
    assert f"{key}: found {present + 1}" in told


def tiny_roberta(folder: Path, tokens: int) -> Experiment:
    """An experiment whose encoder has 128 positions, of which a RoBERTa does not use the first two."""
    experiment = tiny_bert(folder, f"data.max_tokens={tokens}")
    config = Path(experiment.model.path) / "config.json"
    settings = json.loads(config.read_text()) | {"model_type": "roberta", "pad_token_id": 1}
    config.write_text(json.dumps(settings))
    return experiment


def test_a_roberta_reads_two_tokens_less_than_it_has_positions(tmp_path: Path) -> None:
    check_inputs(tiny_roberta(tmp_path, 126))
    told = refusal(tiny_roberta(tmp_path, 127))
    assert all(part in told for part in ("data.max_tokens", "127", "126"))


@pytest.mark.parametrize("make", [tiny_entities, tiny_co_mention])
@pytest.mark.parametrize("key", ["data.max_tokens", "data.max_entity_tokens"])
def test_mentions_and_entities_must_not_exceed_the_positions(tmp_path: Path, make: Any, key: str) -> None:
    experiment = make(tmp_path)
    settings = json.loads((Path(experiment.model.path) / "config.json").read_text())
    most = settings["max_position_embeddings"]
    check_inputs(make(tmp_path, f"{key}={most}"))
    told = refusal(make(tmp_path, f"{key}={most + 1}"))
    assert key in told
    assert str(most) in told


def test_longer_samples_are_refused_when_the_model_is_created(tmp_path: Path) -> None:
    """The model has no folder that the check of inputs could read, as with a name on a hub."""
    experiment = tiny_bert(tmp_path, "data.fold=none", "data.max_tokens=200")
    with open(tmp_path / "train.tsv", "a") as stream:
        stream.write("the film " * 80 + "\tgood\n")
    task_class(experiment).prepare(experiment)
    with pytest.raises(DataError) as caught:
        task_class(experiment)(experiment).model()
    assert all(part in str(caught.value) for part in ("data.max_tokens", "162", "128"))


@pytest.mark.parametrize("make", [tiny_bert, tiny_entities])
def test_the_tokenizer_of_a_model_with_more_tokens_is_refused(tmp_path: Path, make: Any) -> None:
    bert = Path(make(tmp_path).model.path)
    other = Path(shutil.copytree(bert, tmp_path / "other"))
    settings = json.loads((other / "tokenizer.json").read_text())
    tokens = settings["model"]["vocab"]
    first = len(tokens)
    tokens |= {f"word{number}": number for number in range(first, first + 8)}
    (other / "tokenizer.json").write_text(json.dumps(settings))
    expected = (f"{first + 8} tokens", f"vectors for {first}")
    experiment = make(tmp_path, f"data.tokenizer_path={json.dumps(str(other))}")
    told = refusal(experiment)
    assert all(part in told for part in (*expected, "data.tokenizer_path", "model.path"))


@pytest.mark.parametrize("make", [tiny_bert, tiny_entities])
def test_a_token_that_was_only_added_needs_no_vector(tmp_path: Path, make: Any) -> None:
    """As <image_soft_token> of gemma-3-1b."""
    bert = Path(make(tmp_path).model.path)
    other = Path(shutil.copytree(bert, tmp_path / "other"))
    settings = json.loads((other / "tokenizer.json").read_text())
    flags = ("single_word", "lstrip", "rstrip", "normalized")
    added: dict[str, Any] = dict.fromkeys(flags, False)
    added |= {"id": len(settings["model"]["vocab"]), "content": "<image_soft_token>", "special": True}
    settings["added_tokens"].append(added)
    (other / "tokenizer.json").write_text(json.dumps(settings))
    check_inputs(make(tmp_path, f"data.tokenizer_path={json.dumps(str(other))}"))


def test_a_head_of_another_number_of_labels_is_refused(tmp_path: Path) -> None:
    experiment = tiny_bert(tmp_path)
    task_class(experiment).prepare(experiment)
    prepared = find_prepared_set(experiment.data)
    assert prepared is not None
    count, config = len(read_meta(prepared)["labels"]), tmp_path / "bert" / "config.json"
    settings = json.loads(config.read_text()) | {"architectures": ["BertForSequenceClassification"]}
    for labels in (count, count + 1):
        names = {str(code): f"label {code}" for code in range(labels)}
        for head in ({"id2label": names}, {"num_labels": labels}):
            config.write_text(json.dumps(settings | head))
            found = [(each.key, str(labels) in each.problem) for each in input_violations(experiment)]
            assert found == ([] if labels == count else [(("model", "path"), True)])


def test_damaged_model_config_is_not_reported_by_the_check_of_inputs(tmp_path: Path) -> None:
    experiment = tiny_bert(tmp_path, "data.max_tokens=4096")
    (tmp_path / "bert" / "config.json").write_text("{")
    check_inputs(experiment)
