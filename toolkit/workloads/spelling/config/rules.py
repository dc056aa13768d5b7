"""Rules between keys of the sections."""

from __future__ import annotations

from collections.abc import Iterator

from toolkit.config.schema import Experiment
from toolkit.registry import extra_with
from toolkit.workload import Violation, rule
from toolkit.workloads.spelling.config.data import SpellingTexts
from toolkit.workloads.spelling.config.models import (
    AttentionModel,
    TokenizationRepair,
    TokenizationRepairPlus,
)
from toolkit.workloads.spelling.config.noise import NOISES, WhitespaceNoise, noise_faults, noises_within
from toolkit.workloads.spelling.config.tasks import SecNmt, SecWordsNmt, Writing


def _at(key: str, problem: str, hint: str = "") -> Violation:
    return Violation(key=tuple(key.split(".")), problem=problem, hint=hint)


@rule("task.kind")
def _packages(experiment: Experiment) -> Iterator[Violation]:
    try:
        import rapidfuzz  # noqa: F401
    except ImportError:
        problem = "these tasks need the package rapidfuzz, which is not installed here"
        yield _at("task.kind", problem, f"pip install '{extra_with('rapidfuzz') or 'rapidfuzz'}'")


@rule("task.kind", "data")
def _noise(experiment: Experiment) -> Iterator[Violation]:
    noise = getattr(experiment.data, "noise", None)
    if isinstance(noise, tuple(NOISES.values())):
        yield from noise_faults(noise, ("data", "noise"))


@rule("task.kind", "data.path", "data.datasets", "data.dataset_limits", "data.val_splits", "data.validation")
def _texts(experiment: Experiment) -> Iterator[Violation]:
    data = experiment.data
    if not isinstance(data, SpellingTexts):
        return
    if data.path is not None and data.datasets is not None:
        yield _at("data.path", "found path together with datasets, expected one of them")
        return
    names = data.datasets if data.path is None else (data.path,)
    if not names:
        yield _at("data.datasets", "no file is given, expected at least one data set")
        return
    for name in ("dataset_limits", "val_splits"):
        values = getattr(data, name)
        if values is not None and len(values) != len(names):
            problem = f"found {len(values)}, expected one for each of the {len(names)} data sets"
            yield _at(f"data.{name}", problem)
    if data.val_splits is not None and data.validation is not None:
        yield _at("data.val_splits", "found val_splits together with validation, expected one of them")


@rule("task.kind", "data.max_length", "model.max_length", "model.max_input_length")
def _lengths(experiment: Experiment) -> Iterator[Violation]:
    data, model = experiment.data, experiment.model
    for name in ("max_length", "max_input_length"):
        most = getattr(model, name, None)
        if isinstance(data, SpellingTexts) and most is not None and data.max_length > most:
            problem = f"found {data.max_length}, but the model reads {most} tokens (model.{name})"
            yield _at("data.max_length", problem)


@rule("task.kind", "data.output_tokenizer_path")
def _output(experiment: Experiment) -> Iterator[Violation]:
    if isinstance(experiment.task, SecNmt | SecWordsNmt) and experiment.data.output_tokenizer_path is None:
        problem = f"found none, but {experiment.task.kind} writes texts"
        hint = "the output tokenizer, often the same file as data.tokenizer_path"
        yield _at("data.output_tokenizer_path", problem, hint)


@rule("task.kind", "data.noise")
def _words_stay(experiment: Experiment) -> Iterator[Violation]:
    if not isinstance(experiment.task, SecWordsNmt):
        return
    if any(isinstance(noise, WhitespaceNoise) for _, noise in noises_within(experiment.data.noise)):
        problem = "found whitespace, but sec_words_nmt corrects each word separately"
        yield _at("data.noise", problem, "sec_nmt with a character tokenizer writes whole texts")


@rule("task", holds_for_stored=False)
def _width(experiment: Experiment) -> Iterator[Violation]:
    task = experiment.task
    if isinstance(task, Writing) and task.search == "greedy" and task.beam_width != Writing().beam_width:
        problem = f"found {task.beam_width}, but task.search greedy has no beam"
        yield _at("task.beam_width", problem, "task.search=beam, or no task.beam_width")


@rule("model.kind", "model.hidden_dim", "model.num_heads")
def _hidden_dim(experiment: Experiment) -> Iterator[Violation]:
    model = experiment.model
    if not isinstance(model, AttentionModel):
        return
    if model.hidden_dim % 2:
        problem = f"found {model.hidden_dim}, but positions are encoded by pairs of sine and cosine"
        yield _at("model.hidden_dim", problem, "an even number")
    elif model.hidden_dim % model.heads:
        problem = f"found {model.hidden_dim}, which is not a multiple of the {model.heads} attention heads"
        yield _at("model.hidden_dim", problem, "a multiple of model.num_heads (of 64, if that is null)")


@rule("model.kind", "model.class_weights")
def _class_weights(experiment: Experiment) -> Iterator[Violation]:
    model = experiment.model
    if isinstance(model, TokenizationRepair) and len(model.class_weights) != 3:
        problem = f"found {len(model.class_weights)} weights"
        yield _at("model.class_weights", problem, "three: for keep, insert and delete")


@rule("task.kind", "model.kind", "model.num_sec_layers", "data.output_tokenizer_path")
def _written_words(experiment: Experiment) -> Iterator[Violation]:
    model, data = experiment.model, experiment.data
    if not isinstance(model, TokenizationRepairPlus) or not isinstance(data, SpellingTexts):
        return
    key = "data.output_tokenizer_path"
    if model.num_sec_layers and data.output_tokenizer_path is None:
        problem = f"is missing, but the model's {model.num_sec_layers} model.num_sec_layers write words"
        yield _at(key, problem, "the JSON file of the output tokenizer")
    elif data.output_tokenizer_path is not None and not model.num_sec_layers:
        yield _at(key, "found one, but the model writes nothing if model.num_sec_layers is 0")


RULES = (
    _packages,
    _noise,
    _texts,
    _lengths,
    _output,
    _words_stay,
    _width,
    _hidden_dim,
    _class_weights,
    _written_words,
)
