"""Loading a downloaded model folder never executes code from it, and gives weights to train."""

from __future__ import annotations

import builtins
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from tests.toolkit.support.bert import write_bert
from toolkit.errors import DataError
from toolkit.nlp.encoder import Encoder, network_of, settings_of

Load = Callable[[Path], torch.nn.Module]


@pytest.fixture
def load() -> Load:
    options: dict[str, Any] = {"layers": None, "dropout": None, "vocabulary_size": 40, "like": []}
    return lambda path: Encoder(str(path), **options, pad_id=0, key="model.layers")


def classifier(path: Path) -> Any:
    from transformers import AutoModelForSequenceClassification

    settings = settings_of(str(path), layers=None, dropout=None, key="model.layers")
    return network_of(AutoModelForSequenceClassification, str(path), settings)


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_bert(tmp_path_factory.mktemp("models") / "bert")


@pytest.fixture
def folder(bert: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(bert, tmp_path / "model"))


@pytest.fixture
def proof(tmp_path: Path) -> Path:
    """A file that exists only if code was executed."""
    return tmp_path / "executed"


@pytest.fixture
def answers_yes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Answer yes to any question whether code may be executed."""
    monkeypatch.setattr(builtins, "input", lambda prompt: "yes")


def plant(folder: Path, proof: Path, **settings: str) -> None:
    (folder / "planted.py").write_text(
        f"open({str(proof)!r}, 'w').close()\n"
        "from transformers import BertConfig as Config, BertForSequenceClassification as Model\n"
    )
    names = {"AutoConfig": "Config", "AutoModel": "Model", "AutoModelForSequenceClassification": "Model"}
    config = json.loads((folder / "config.json").read_text()) | settings
    config["auto_map"] = {name: f"planted.{target}" for name, target in names.items()}
    (folder / "config.json").write_text(json.dumps(config))


@pytest.mark.usefixtures("answers_yes")
def test_custom_code_beside_a_known_model_is_not_executed(load: Load, folder: Path, proof: Path) -> None:
    plant(folder, proof)
    load(folder)
    with torch.device("meta"):
        # As its shapes are told.
        load(folder)
    assert not proof.exists()


@pytest.mark.usefixtures("answers_yes")
def test_a_model_defined_by_custom_code_is_refused(load: Load, folder: Path, proof: Path) -> None:
    plant(folder, proof, model_type="of-somebody")
    with pytest.raises(DataError, match=r"custom code"):
        load(folder)
    assert not proof.exists()


def test_pickled_weights_are_refused_without_being_opened(
    load: Load, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()

    def refuse(*arguments: Any, **options: Any) -> None:
        raise AssertionError("a pickle was opened")

    monkeypatch.setattr(torch, "load", refuse)
    with pytest.raises(DataError, match=r"it holds: .*pytorch_model\.bin.*a pickle"):
        load(folder)


def test_weights_in_half_precision_are_loaded_in_single_precision(load: Load, folder: Path) -> None:
    from transformers import AutoModel

    half = folder / "half"
    AutoModel.from_pretrained(folder).half().save_pretrained(half)
    made = [load(half)]
    with torch.device("meta"):
        # As its shapes are told.
        made.append(load(half))
    assert {each.dtype for model in made for each in model.parameters()} == {torch.float32}


@pytest.mark.parametrize("kind", ["encoder", "classifier"])
@pytest.mark.parametrize(
    "prefix, without, said",
    [("module.", "no such", r"there is module\."), ("", "layer.1.", r"encoder\.layer\.1\.")],
)
def test_a_file_without_the_weights_of_the_encoder_is_refused(
    load: Load, folder: Path, kind: str, prefix: str, without: str, said: str
) -> None:
    """transformers would draw them at random. Only the pooler may be missing, which many models lack."""
    load, file = load if kind == "encoder" else classifier, folder / "model.safetensors"
    whole = load_file(file)
    save_file({name: each for name, each in whole.items() if "pooler" not in name}, file)
    load(folder)
    save_file({f"{prefix}{name}": each for name, each in whole.items() if without not in name}, file)
    with pytest.raises(DataError, match=rf"lack .*{said}"):
        load(folder)
