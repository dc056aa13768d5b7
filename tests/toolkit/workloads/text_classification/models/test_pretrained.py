"""Classifiers of transformers, loaded from a folder and exported to a folder."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn import functional

from tests.toolkit.support.bert import write_bert
from tests.toolkit.workloads.text_classification.tiny_texts import tiny_bert
from toolkit.errors import DataError
from toolkit.nlp.exported_files import ExportedFiles
from toolkit.nlp.weights_export import export_model
from toolkit.precheck.check_inputs import check_inputs
from toolkit.run.run_dir import RunDir
from toolkit.workloads.text_classification.config import Pretrained as Config
from toolkit.workloads.text_classification.models.pretrained import Pretrained

LABELS = ("bad", "so so", "good")
TOKENS = torch.tensor([[2, 9, 30, 31, 3], [2, 9, 3, 0, 0]])


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(write_bert(tmp_path_factory.mktemp("models") / "bert"))


def model(path: str, **parameters: object) -> Pretrained:
    torch.manual_seed(0)
    return Pretrained(Config(path=path, **parameters), labels=LABELS, pad_id=0).eval()


def test_padding_has_no_effect(bert: str) -> None:
    torch.testing.assert_close(model(bert)(TOKENS)[1:], model(bert)(TOKENS[1:, :3]))


def test_weights_are_from_the_folder_and_the_head_is_drawn_from_the_seed(bert: str) -> None:
    first, second = model(bert).state_dict(), model(bert).state_dict()
    assert all(torch.equal(first[name], second[name]) for name in first)
    torch.manual_seed(1)
    other = Pretrained(Config(path=bert), labels=LABELS, pad_id=0).state_dict()
    assert {name for name in first if not torch.equal(first[name], other[name])} == {
        "network.classifier.weight"
    }


def test_only_the_first_layers_can_be_kept(bert: str) -> None:
    assert model(bert, layers=1).network.config.num_hidden_layers == 1
    assert sum("layer.1." in name for name in model(bert, layers=1).state_dict()) == 0
    with pytest.raises(DataError, match=r"model.layers is 3, but the model in .* has 2 layers"):
        model(bert, layers=3)


def test_dropout_is_set_everywhere(bert: str) -> None:
    trained = model(bert, dropout=0.0).train()
    torch.testing.assert_close(trained(TOKENS), trained(TOKENS), rtol=0, atol=0)
    trained = model(bert, dropout=0.5).train()
    assert not torch.equal(trained(TOKENS), trained(TOKENS))


@pytest.mark.parametrize("kind", ["albert", "deberta-v2", "modernbert", "t5", "xlm"])
def test_dropout_is_set_whatever_its_names_are(kind: str, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"model_type": kind}))
    with torch.device("meta"):
        network = model(str(tmp_path), dropout=0.25).network
    assert {each.p for each in network.modules() if isinstance(each, nn.Dropout)} == {0.25}


def test_last_layer_of_the_first_token_gives_the_same_scores_and_gradients(bert: str) -> None:
    whole, first = (
        model(bert, dropout=0.0).train(),
        model(bert, dropout=0.0, last_layer="first_token").train(),
    )
    for tokens in (TOKENS, TOKENS[:1]):
        torch.testing.assert_close(first(tokens), whole(tokens))
    for each in (whole, first):
        functional.cross_entropy(each(TOKENS), torch.tensor([0, 2])).backward()
    expected = dict(whole.named_parameters())
    for name, parameter in first.named_parameters():
        torch.testing.assert_close(parameter.grad, expected[name].grad, rtol=1e-4, atol=1e-6)


def test_last_layer_of_the_first_token_computes_only_that_token_with_dropout(bert: str) -> None:
    first = model(bert, dropout=0.5, last_layer="first_token").train()
    assert not torch.equal(first(TOKENS), first(TOKENS))
    shapes: list[torch.Size] = []
    last = first.network.bert.encoder.layer[-1]
    last.intermediate.register_forward_hook(lambda *taken: shapes.append(taken[2].shape[:2]))
    first(TOKENS)
    assert shapes == [(2, 1)]


def test_last_layer_of_the_first_token_is_refused_for_other_architectures(tmp_path: Path) -> None:
    from transformers import DistilBertConfig, DistilBertForSequenceClassification

    settings = DistilBertConfig(vocab_size=40, dim=8, hidden_dim=8, n_layers=1, n_heads=2)
    settings.num_labels = 3
    DistilBertForSequenceClassification(settings).save_pretrained(tmp_path)
    with pytest.raises(DataError, match=r"is for BERT, but the model in .* is distilbert; set it to all"):
        model(str(tmp_path), last_layer="first_token")


def test_padding_has_no_effect_on_a_decoder_whose_config_names_none(tmp_path: Path) -> None:
    from transformers import GPT2Config, GPT2Model

    torch.manual_seed(0)
    settings = GPT2Config(vocab_size=40, n_positions=16, n_embd=8, n_layer=1, n_head=2)
    settings.pad_token_id = None
    GPT2Model(settings).save_pretrained(tmp_path)
    torch.testing.assert_close(model(str(tmp_path))(TOKENS)[1:], model(str(tmp_path))(TOKENS[1:, :3]))


def test_classifier_of_another_number_of_labels_is_refused(bert: str, tmp_path: Path) -> None:
    model(bert).network.save_pretrained(tmp_path)
    assert model(str(tmp_path)).network.config.id2label == dict(enumerate(LABELS))
    with pytest.raises(DataError, match=r"has 3 labels, the data have 2: .* without this head"):
        Pretrained(Config(path=str(tmp_path)), labels=LABELS[1:], pad_id=0)


@pytest.mark.parametrize("kind", ["xlnet", "fnet", "yoso"])
def test_an_architecture_that_reads_padding_is_refused(kind: str, tmp_path: Path) -> None:
    experiment = tiny_bert(tmp_path)
    (tmp_path / "bert" / "config.json").write_text(json.dumps({"model_type": kind}))
    refused = r"the model in .* the padding of a batch"
    with pytest.raises(DataError, match=refused):
        check_inputs(experiment)
    with pytest.raises(DataError, match=refused):
        model(experiment.model.path)


def test_a_model_without_a_head_is_not_blamed_for_one(bert: str, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(bert, tmp_path / "bert"))
    settings = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(settings | {"vocab_size": settings["vocab_size"] + 1}))
    with pytest.raises(RuntimeError):
        model(str(folder))


def test_transformers_loads_the_trained_model_with_its_labels(bert: str, tmp_path: Path) -> None:
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    trained, run = model(bert), RunDir(tmp_path)
    export_model(run, trained, "reviews", [Path(bert) / "tokenizer.json"], trained.network)
    again = AutoModelForSequenceClassification.from_pretrained(ExportedFiles(run).model).eval()
    torch.testing.assert_close(again(input_ids=TOKENS[:1]).logits, trained(TOKENS[:1]))
    assert again.config.id2label == dict(enumerate(LABELS))
    assert AutoTokenizer.from_pretrained(ExportedFiles(run).model)("film")["input_ids"][0] == 2


def test_state_dict_loads_into_the_bare_model(bert: str, tmp_path: Path) -> None:
    trained, run = model(bert), RunDir(tmp_path)
    export_model(run, trained, "reviews", pretrained=trained.network)
    stored = torch.load(tmp_path / "artifacts" / "reviews_trained_model.sav", weights_only=True)
    other = model(bert)
    torch.nn.init.ones_(other.network.classifier.weight)
    other.network.load_state_dict(stored)
    torch.testing.assert_close(other(TOKENS), trained(TOKENS))
