"""Weights that do not fit a model of our workloads are refused before the run is queued."""

from __future__ import annotations

import shutil
from dataclasses import asdict, fields, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from tests.tiers import first_quick
from tests.toolkit.precheck.test_warm_start import KEY, of_run, other_file, refusal
from tests.toolkit.support.ranks import run_ranks
from tests.toolkit.support.tiny import prepared
from tests.toolkit.support.tiny_training import Attempt, Lab, train_rank
from tests.toolkit.workloads.entity_disambiguation.entity_files import (
    database,
    tiny_co_mention,
    tiny_entities,
)
from tests.toolkit.workloads.spelling.spelling_files import tiny_words
from tests.toolkit.workloads.text_classification.tiny_texts import tiny_bert, tiny_docnn
from toolkit.config import to_yaml
from toolkit.files import write_json
from toolkit.precheck.check_inputs import check_inputs
from toolkit.registry import load_code, task_kinds
from toolkit.run.run_dir import WEIGHTS, RunDir
from toolkit.workload import silent
from toolkit.workloads.entity_disambiguation.data.entities.profiles import Profile
from toolkit.workloads.entity_disambiguation.data.samples.known import Known
from toolkit.workloads.entity_disambiguation.files import DisambiguationFiles
from toolkit.workloads.spelling.config.models import AttentionModel
from toolkit.workloads.spelling.tokenizers.tokenizer import load_tokenizer
from toolkit.workloads.text_classification.config import DocNN


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> RunDir:
    lab = Lab(tmp_path_factory.mktemp("warm"))
    return lab.train(tiny_docnn(lab.folder, "train.epochs=1"), Attempt())


SIZES: dict[str, Any] = {"vocabulary_size": 11, "labels": ("a", "b"), "pad_id": 0}
MODELS = {
    kind: entry
    for row in task_kinds().values()
    for kind, entry in row.models.items()
    if issubclass(entry[0], DocNN | AttentionModel)
}


def shapes(code: str, config: Any) -> dict[str, tuple[int, ...]]:
    model: nn.Module = load_code(code)(config, **SIZES)
    return {name: tuple(value.shape) for name, value in model.state_dict().items()}


def other(value: Any) -> Any:
    """Another value of the same kind."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return 2 * value
    return (*value, 5) if isinstance(value, tuple) else None


def keys(section: type) -> list[str]:
    return [each.name for each in fields(section)]


@pytest.mark.parametrize("what", first_quick(["run", "file"]))
def test_weights_for_labels_in_another_order_are_refused(tmp_path: Path, source: RunDir, what: str) -> None:
    begins = f"{KEY}={of_run(source, what)}"
    check_inputs(tiny_docnn(tmp_path, begins, "data.labels=[bad, good]"))
    told = refusal(tiny_docnn(tmp_path, begins, "data.labels=[good, bad]"))
    assert all(part in told for part in (KEY, str(of_run(source, what)), "'bad'", "'good'"))
    file = shutil.copy(of_run(source, "file"), tmp_path / WEIGHTS)
    check_inputs(tiny_docnn(tmp_path, f"{KEY}={file}", "data.labels=[good, bad]"))


def test_vocabulary_of_the_same_size_with_other_words_is_refused(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    source = lab.train(tiny_docnn(tmp_path, "train.epochs=1", "data.max_vocabulary=9"), Attempt())
    experiment = tiny_docnn(tmp_path / "other", f"{KEY}={source.path}", "data.max_vocabulary=9")
    check_inputs(experiment)
    table = Path(experiment.data.train)
    table.write_text(table.read_text().replace("film", "movie"))
    run = lab.start(experiment)
    (ended,) = run_ranks(1, train_rank, run.path, Attempt())
    assert all(part in ended.error for part in ("DataError", KEY, "'film'", "'movie'"))
    assert "'movie'" in refusal(experiment)


@pytest.mark.parametrize("has_vectors", [True, False])
def test_types_in_another_order_are_refused_where_a_model_has_vectors_of_them(
    tmp_path: Path, has_vectors: bool
) -> None:
    make = partial(tiny_co_mention, tmp_path, "model.entity_text=false")
    make = make if has_vectors else partial(tiny_entities, tmp_path)
    source = RunDir(tmp_path / "source")
    source.artifacts.mkdir(parents=True)
    source.config.write_text(to_yaml(make()))
    known = Known.of(make().data.prepare(silent).meta)
    write_json(DisambiguationFiles(source).known, asdict(known))
    begins = f"{KEY}={other_file(source.path / WEIGHTS, {'a': torch.zeros(2)})}"
    check_inputs(make(begins))
    grown = database()
    grown.add(Profile(entity_id="aaa", title="aaa", types={"kinds": ("town",)}))
    grown.save(tmp_path / "grown")
    changed = make(begins, f"data.entity_db={tmp_path}/grown")
    changed.data.prepare(silent)
    if has_vectors:
        assert "type 1 belongs to 'river' there, to 'town' in these data" in refusal(changed)
    else:
        check_inputs(changed)


def test_vocabulary_of_another_size_is_reported_with_the_tensor_and_advice(
    tmp_path: Path, source: RunDir
) -> None:
    file = shutil.copy(of_run(source, "file"), tmp_path / WEIGHTS)
    told = refusal(prepared(tiny_docnn(tmp_path, f"{KEY}={file}", "data.min_count=3")))
    assert all(part in told for part in ("tokens", "embedding.weight [", "set model and data to theirs"))


def test_weights_for_another_tokenizer_or_width_are_refused_before_data_are_prepared(tmp_path: Path) -> None:
    experiment = tiny_words(tmp_path)
    tokens = len(load_tokenizer(Path(experiment.data.tokenizer_path)))
    file = other_file(tmp_path / WEIGHTS, {"a": torch.zeros(tokens, 2), "b": torch.zeros(16)})
    begins = f"{KEY}={file}"
    check_inputs(tiny_words(tmp_path, begins, "model.hidden_dim=16"))
    told = refusal(tiny_words(tmp_path, begins, "model.hidden_dim=32"))
    assert all(part in told for part in (str(file), "model.hidden_dim", "32"))
    other_file(file, {"a": torch.zeros(tokens + 1, 2), "b": torch.zeros(16)})
    assert f"{tokens:,} tokens" in refusal(tiny_words(tmp_path, begins, "model.hidden_dim=16"))


def test_encoder_with_another_number_of_layers_is_refused(tmp_path: Path) -> None:
    """The config.yaml beside the weights names their encoder."""
    one = tiny_bert(tmp_path)
    before = tmp_path / "before"
    before.mkdir()
    weights = before / WEIGHTS
    save_file({"a": torch.zeros(2)}, weights)
    (before / "config.yaml").write_text(to_yaml(one))
    check_inputs(replace(one, train=replace(one.train, start_from_checkpoint=str(weights))))
    layered = tiny_bert(tmp_path, f"{KEY}={weights}", "model.layers=1")
    assert "num_hidden_layers" in refusal(layered)


@pytest.mark.parametrize("kind", MODELS)
def test_model_section_lists_exactly_the_keys_that_change_the_weights(kind: str) -> None:
    """Each key in SHAPES changes names or shapes of the weights, and no other key does."""
    section, code = MODELS[kind]
    small: dict[str, Any] = {"hidden_dim": 8, "num_heads": 1} if issubclass(section, AttentionModel) else {}
    few = {
        name: 2
        for name in ("num_layers", "num_encoder_layers", "num_decoder_layers")
        if name in keys(section)
    }
    if "head_layers" in keys(section):
        few["head_layers"] = 1
    plain: Any = section(**small, **few)
    first = shapes(code, plain)
    for name in keys(section):
        changed = 99 if name == "feed_forward_dim" else other(getattr(plain, name))
        if changed is None or name in ("kind", "class_weights"):
            continue
        decides = {"feed_forward_dim": "feed_forward"}.get(name, name) in vars(section)["SHAPES"]
        assert (shapes(code, replace(plain, **{name: changed})) != first) == decides, name
