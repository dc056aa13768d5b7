"""The experiments of the spelling study: defaults, variables, and variables that must be set."""

from __future__ import annotations

from operator import attrgetter
from pathlib import Path

import pytest

from tests.docs.readme import ROOT
from toolkit.config import load
from toolkit.config.schema import Experiment
from toolkit.errors import ConfigError

CONFIGS = ROOT / "configs"
#: Shape -> task, model.
TRAINING = {
    "sed_words": ("sed_words", "graph"),
    "sed_words_transformer": ("sed_words", "transformer"),
    "sed_sequence": ("sed_sequence", "graph"),
    "sed_sequence_transformer": ("sed_sequence", "transformer"),
    "sec_nmt_transformer": ("sec_nmt", "nmt"),
    "sec_words_nmt_transformer": ("sec_words_nmt", "words_nmt"),
    "sec_with_tokenization_repair_nmt_transformer": ("sec_nmt", "nmt"),
    "tokenization_repair": ("tokenization_repair", "tokenization_repair"),
    "tokenization_repair_plus_sed": ("tokenization_repair_plus", "tokenization_repair_plus"),
    "tokenization_repair_plus_sed_plus_sec": ("tokenization_repair_plus", "tokenization_repair_plus"),
}
FINETUNED = [name for name in TRAINING if "repair" not in name]
SHAPES = {**TRAINING, **{f"finetune_{name}": TRAINING[name] for name in FINETUNED}}
#: Shape -> the variable that must be set, and its key.
NEEDS = {
    **{name: ("STK_REPAIR_RUN", "model.repair_run") for name in TRAINING if "plus" in name},
    **{
        f"finetune_{name}": ("STK_START_FROM_CHECKPOINT", "train.start_from_checkpoint") for name in FINETUNED
    },
}
#: A shape, a variable that it reads, another value than the default, the key that it sets, and the new value.
VARIABLES = [
    ("sed_words", "STK_HIDDEN_DIM", "128", "model.hidden_dim", 128),
    ("sed_words", "STK_NUM_LAYERS", "3", "model.num_layers", 3),
    ("sed_words", "STK_ADD_WORD_FEATURES", "false", "model.word_features", False),
    ("sed_words", "STK_WORD_FULLY_CONNECTED", "false", "model.word_fully_connected", False),
    ("sed_words", "STK_TOKEN_FULLY_CONNECTED", "true", "model.token_fully_connected", True),
    ("sed_words_transformer", "STK_NUM_ENCODER_LAYERS", "3", "model.num_layers", 3),
    ("sed_words_transformer", "STK_MAX_INPUT_LENGTH", "256", "data.max_length", 256),
    ("sec_nmt_transformer", "STK_NUM_ENCODER_LAYERS", "3", "model.num_encoder_layers", 3),
    ("sec_nmt_transformer", "STK_NUM_DECODER_LAYERS", "3", "model.num_decoder_layers", 3),
    ("sec_words_nmt_transformer", "STK_USE_SEQUENCE_CONTEXT", "true", "model.use_sequence_context", True),
    ("sec_words_nmt_transformer", "STK_MAX_OUTPUT_LENGTH", "700", "model.max_output_length", 700),
    ("tokenization_repair", "STK_NUM_ENCODER_LAYERS", "3", "model.num_encoder_layers", 3),
    ("tokenization_repair_plus_sed", "STK_NUM_WORD_LAYERS", "3", "model.num_word_layers", 3),
    (
        "tokenization_repair_plus_sed", "STK_FIX_TOKENIZATION_REPAIR", "false",
        "model.fix_tokenization_repair", False,
    ),
    ("tokenization_repair_plus_sed_plus_sec", "STK_NUM_SEC_LAYERS", "3", "model.num_sec_layers", 3),
    ("sed_words", "STK_EXPERIMENT_NAME", "mine", "name", "mine"),
    ("sed_words", "STK_SEED", "1", "seed", 1),
    ("sed_words", "STK_EPOCHS", "2", "train.epochs", 2),
    ("sed_words", "STK_BATCH_MAX_LENGTH", "98304", "train.batch_max_length", 98304),
    ("sed_words", "STK_BUCKET_SPAN", "16", "train.bucket_span", 16),
    ("sed_words", "STK_BUCKET_SPAN", "null", "train.bucket_span", None),
    ("sed_words", "STK_LOGICAL_RANKS", "12", "train.logical_ranks", 12),
    ("sed_words", "STK_MIXED_PRECISION", "bf16", "train.precision", "bf16"),
    ("sed_words", "STK_LOG_PER_EPOCH", "200", "train.log_per_epoch", 200),
    ("sed_words", "STK_EVAL_PER_EPOCH", "20", "train.eval_per_epoch", 20),
    ("sed_words", "STK_LR", "0.001", "optimizer.lr", 0.001),
    ("sed_words", "STK_WEIGHT_DECAY", "0", "optimizer.weight_decay", 0),
    ("sed_words", "STK_DATA_LIMIT", "100", "data.dataset_limits", (100,)),
    ("sed_words", "STK_NOISE_DRAWS", "20", "data.noise_draws", 20),
    ("sed_words", "STK_VAL_SPLIT", "0.1", "data.val_splits", (0.1,)),
    ("sed_words", "STK_BPE_SIZE", "1000", "data.tokenizer_path", "/data/spelling/tokenizers/bpe_1000.json"),
    ("sed_words", "STK_TOKENIZER", "bytes", "data.tokenizer_path", "/data/spelling/tokenizers/bytes.json"),
    (
        "sec_nmt_transformer", "STK_OUTPUT_TOKENIZER", "characters", "data.output_tokenizer_path",
        "/data/spelling/tokenizers/characters.json",
    ),
    ("sed_words", "STK_DICTIONARY", "/words.txt", "data.dictionary", "/words.txt"),
    ("sed_words", "STK_MISSPELLINGS", "/wrong.json", "data.noise.misspellings", "/wrong.json"),
    ("sed_words", "STK_NODES", "4", "resources.nodes", 4),
    ("sed_words", "STK_TASKS_PER_NODE", "2", "resources.tasks_per_node", 2),
    ("sed_words", "STK_GRES", "gpu:2", "resources.gres", "gpu:2"),
    ("sed_words", "STK_TIME", "1:00:00", "resources.time", "1:00:00"),
]  # fmt: skip


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STK_DATA_DIR", "/data")


def shape(name: str, monkeypatch: pytest.MonkeyPatch) -> Experiment:
    """Return the experiment of a shape, with the variable that must be set."""
    if name in NEEDS:
        monkeypatch.setenv(NEEDS[name][0], "/runs/source")
    return load(CONFIGS / "spelling" / f"{name}.yaml", [])


def test_all_shapes_are_tested() -> None:
    assert {path.stem for path in (CONFIGS / "spelling").iterdir()} == set(SHAPES)


@pytest.mark.parametrize("name", SHAPES)
def test_a_shape_has_its_task_model_and_defaults(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    experiment = shape(name, monkeypatch)
    assert (experiment.name, experiment.task.kind, experiment.model.kind) == (name, *SHAPES[name])
    data, train = experiment.data, experiment.train
    assert data.datasets == ("/data/spelling/text/train.txt",)
    assert (data.dataset_limits, data.val_splits) == ((100_000_000,), (500,))
    assert (train.epochs, train.batch_max_length, train.bucket_span, train.log_per_epoch) == (1, 4096, 4, 100)
    # The longest text fits into the share of a logical rank.
    assert train.batch_max_length // train.logical_ranks >= 512
    assert (experiment.optimizer.lr, experiment.optimizer.weight_decay) == (1e-4, 0.01)
    assert (experiment.lr_scheduler.warmup, experiment.seed) == (0.05, 22)
    assert (data.output_tokenizer_path is None) == ("sec" not in name.replace("plus_sec", "sec"))


@pytest.mark.parametrize("name", TRAINING)
def test_the_learning_rate_falls_after_three_quarters(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    experiment = shape(name, monkeypatch)
    assert (experiment.lr_scheduler.kind, experiment.lr_scheduler.step_at) == ("step", (0.75, 0.9))
    assert experiment.train.eval_per_epoch == 4
    assert experiment.train.start_from_checkpoint is None


@pytest.mark.parametrize("name", FINETUNED)
def test_finetuning_continues_the_same_model_with_listed_misspellings(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    trained, finetuned = shape(name, monkeypatch), shape(f"finetune_{name}", monkeypatch)
    assert finetuned.train.start_from_checkpoint == "/runs/source"
    assert finetuned.model == trained.model
    assert finetuned.data.tokenizer_path == trained.data.tokenizer_path
    noise = finetuned.data.noise
    assert "realistic" in {noise.kind, *(each.kind for each in getattr(noise, "choices", ()))}
    assert (finetuned.lr_scheduler.kind, finetuned.train.eval_per_epoch) == ("linear", 10)


@pytest.mark.parametrize("name", NEEDS)
def test_a_missing_variable_is_named_with_its_key(name: str) -> None:
    path = CONFIGS / "spelling" / f"{name}.yaml"
    with pytest.raises(ConfigError) as refused:
        load(path, [])
    variable, key = NEEDS[name]
    (fault,) = refused.value.faults
    assert (fault.key, fault.problem) == (key, f"the environment variable {variable} is not set")
    assert Path(str(fault.origin).rpartition(":")[0]).suffix == ".yaml"


@pytest.mark.parametrize("name, variable, value, key, expected", VARIABLES)
def test_a_variable_sets_its_key(
    name: str, variable: str, value: str, key: str, expected: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert attrgetter(key)(shape(name, monkeypatch)) != expected
    monkeypatch.setenv(variable, value)
    assert attrgetter(key)(shape(name, monkeypatch)) == expected


def test_noises_are_those_of_the_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = {name: shape(name, monkeypatch).data.noise for name in SHAPES}
    for name in ("sed_words", "sec_nmt_transformer", "sec_words_nmt_transformer"):
        noise = kinds[name]
        assert (noise.kind, noise.rate, noise.artificial) == ("mixed", 0.2, 0.2)
    chain = [each.kind for each in kinds["tokenization_repair_plus_sed"].steps]
    assert chain == ["mixed", "save", "replace", "whitespace", "substring"]
    chain = [each.kind for each in kinds["sec_with_tokenization_repair_nmt_transformer"].steps]
    assert chain == ["mixed", "whitespace", "substring"]
    clean, wrong = kinds["sed_sequence"].choices
    assert (clean.kind, wrong.kind, wrong.rate, wrong.at_least) == ("none", "mixed", 0.05, 1)


@pytest.mark.parametrize(
    "part",
    sorted(path for section in ("optimizer", "lr_scheduler") for path in (CONFIGS / section).iterdir()),
    ids=lambda path: path.stem,
)
def test_another_optimizer_or_schedule_can_be_chosen(part: Path) -> None:
    section = part.parent.name
    chosen = f"{section}=${{from_file:{section}/{part.name}}}"
    experiment = load(CONFIGS / "spelling" / "sed_words.yaml", [chosen])
    assert attrgetter(section)(experiment).kind == part.stem.partition("_")[0]


def test_every_part_is_used_by_an_experiment() -> None:
    """Except optimizers and schedules, which can be chosen."""
    texts = [path.read_text(encoding="utf-8") for path in CONFIGS.rglob("*.yaml")]
    for folder in ("model", "variant", "noise", "train", "evaluation", "resources"):
        for path in (CONFIGS / folder).iterdir():
            assert any(f"${{from_file:{folder}/{path.name}}}" in text for text in texts), path
