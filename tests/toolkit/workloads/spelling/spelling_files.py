"""Texts in a made-up language of few words, and experiments that find errors in them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import torch

from tests.toolkit.support.checkpointing import save_state
from tests.toolkit.support.tiny import SIZES, of_tokens
from toolkit.checkpoint.state import Progress, TrainState
from toolkit.config import Experiment, load
from toolkit.config.schema import Optimizer
from toolkit.files import write_json
from toolkit.run.create_run import create_run
from toolkit.run.run_dir import RunDir
from toolkit.training.assembly.optimizers import build_optimizer
from toolkit.training.numerics.rng import seed_everything
from toolkit.workloads.spelling.data.texts.dictionary import write_dictionary
from toolkit.workloads.spelling.models.repair import TokenizationRepair
from toolkit.workloads.spelling.tokenizers.make_tokenizer import (
    CHARACTERS,
    SPECIAL,
    characters,
    save,
    train_bpe,
)

WORDS = ("stone", "river", "bridge", "morning", "garden", "letter", "window", "over", "the", "under")

_EXPERIMENT = """\
name: tiny-words
task: {{kind: sed_words}}
model: {{kind: transformer, hidden_dim: 16, num_heads: 2, num_layers: 1, dropout: 0.1}}
data:
  datasets: ["{folder}/texts.txt"]
  val_splits: [{validation}]
  test: ["{folder}/test.txt"]
  noise: {{kind: artificial, rate: 0.3}}
  tokenizer_path: {folder}/tokenizer.json
  dictionary: {folder}/dictionary.txt
  max_length: 100
  workers: 1
  prepared_dir: {folder}/prepared
train: {{epochs: 2, batch_size: 8, bucket_batches: 3, log_per_epoch: 3, eval_per_epoch: 2, device: cpu}}
optimizer: {{lr: 0.01}}
lr_scheduler: {{warmup: 0.2}}
evaluation: {{batch_size: 5, metric: "f1:max"}}
"""


def texts(count: int, first: int = 0) -> Iterator[str]:
    """Texts of two to eleven words, some with a comma."""
    for number in range(first, first + count):
        words = [WORDS[(number * 7 + place * place) % len(WORDS)] for place in range(2 + number * 3 % 10)]
        yield f"{words[0]}, {' '.join(words[1:])} {number}."


def write_texts(path: Path, lines: Iterator[str] | list[str]) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def write_pairs(folder: Path, corrupt: list[str], correct: list[str]) -> Path:
    """Write the folder of a benchmark: texts, and what is right for each."""
    folder.mkdir(parents=True, exist_ok=True)
    write_texts(folder / "corrupt.txt", corrupt)
    write_texts(folder / "correct.txt", correct)
    return folder


def write_spelling_experiment(folder: Path) -> Path:
    """Write texts, tokenizer, dictionary and the experiment file into a folder; returns the file."""
    folder.mkdir(parents=True, exist_ok=True)
    write_texts(folder / "texts.txt", texts(SIZES["train"] + SIZES["validation"]))
    write_texts(folder / "test.txt", texts(SIZES["test"], first=1000))
    save(train_bpe(texts(200), 300), folder / "tokenizer.json")
    write_dictionary(folder / "dictionary.txt", dict.fromkeys(WORDS, 5))
    path = folder / "tiny_words.yaml"
    path.write_text(_EXPERIMENT.format(folder=folder, validation=SIZES["validation"]), encoding="utf-8")
    return path


def tiny_words(folder: Path, *overrides: str) -> Experiment:
    """The tiny experiment with its data in a folder, with the transformer."""
    return load(write_spelling_experiment(folder), overrides)


def tiny_words_graph(folder: Path, *overrides: str) -> Experiment:
    """The same with the graph network, with steps of tokens."""
    model = "model={kind: graph, hidden_dim: 16, num_heads: 2, num_layers: 1}"
    return tiny_words(folder, model, *of_tokens(400, 4), *overrides)


def tiny_texts(folder: Path, *overrides: str) -> Experiment:
    """Detection of texts with errors, with the transformer and without features of words."""
    noise = "data.noise={kind: switch, choices: [none, {kind: artificial, rate: 0.1, at_least: 1}]}"
    return tiny_words(folder, "task.kind=sed_sequence", noise, "model.word_features=false", *overrides)


def tiny_texts_graph(folder: Path, *overrides: str) -> Experiment:
    """The same with the graph network."""
    return tiny_texts(folder, "model={kind: graph, hidden_dim: 16, num_heads: 2, num_layers: 1}", *overrides)


def tiny_corrections(folder: Path, *overrides: str) -> Experiment:
    """Correction of whole texts."""
    model = "model={kind: nmt, hidden_dim: 16, num_heads: 2, num_encoder_layers: 1, num_decoder_layers: 1}"
    return _correction(folder, "sec_nmt", model, *overrides)


def tiny_word_corrections(folder: Path, *overrides: str) -> Experiment:
    """Correction word by word, with sequence context and a beam, with steps of tokens."""
    model = (
        "model={kind: words_nmt, hidden_dim: 16, num_heads: 2, num_encoder_layers: 1, "
        "num_decoder_layers: 1, use_sequence_context: true}"
    )
    beam = ("task.search=beam", "task.beam_width=2")
    return _correction(folder, "sec_words_nmt", model, *beam, *of_tokens(400, 4), *overrides)


def tiny_repaired_corrections(folder: Path, *overrides: str) -> Experiment:
    """Correction of texts with wrong white space: the model reads characters."""
    noise = "data.noise={kind: chained, steps: [{kind: artificial, rate: 0.3}, whitespace]}"
    return tiny_corrections(folder, noise, *_characters(folder), *overrides)


def tiny_repair(folder: Path, *overrides: str) -> Experiment:
    """Repair of white space."""
    noise = "data.noise={kind: chained, steps: [whitespace, {kind: substring, max_characters: 60}]}"
    model = "model={kind: tokenization_repair, hidden_dim: 16, num_heads: 2, num_encoder_layers: 2}"
    return tiny_words(
        folder, "task={kind: tokenization_repair}", model, noise, *_characters(folder), *overrides
    )


def tiny_plus(folder: Path, *overrides: str) -> Experiment:
    """Detection and correction in texts with wrong white space; the repair is trained further."""
    names = ("whitespace", "{kind: substring, max_characters: 60}")
    noise = ", ".join(["{kind: artificial, rate: 0.3}", "save", "replace", *names])
    return tiny_words(
        folder,
        "task={kind: tokenization_repair_plus}",
        f"data.noise={{kind: chained, steps: [{noise}]}}",
        *_characters(folder),
        f"data.output_tokenizer_path={folder}/tokenizer.json",
        # In quotes, because the name of a folder may have a comma.
        f"model={{kind: tokenization_repair_plus, repair_run: '{untrained_repair(folder).path}'}}",
        "model.num_word_layers=1",
        "model.num_sec_layers=1",
        "model.fix_tokenization_repair=false",
        "model.sec_max_output_length=200",
        *overrides,
    )


def tiny_plus_detection(folder: Path, *overrides: str) -> Experiment:
    """The same without correction, with a fixed repair model, with steps of tokens."""
    changes = ("data.output_tokenizer_path=null", "model.num_sec_layers=0")
    fixed = ("model.fix_tokenization_repair=true", "model.word_features=false")
    return tiny_plus(folder, *changes, *fixed, *of_tokens(400, 4), *overrides)


def untrained_repair(folder: Path) -> RunDir:
    """A finished run of tokenization repair that has learnt nothing."""
    experiment = tiny_repair(folder)
    run = create_run(experiment, folder / "repairs")
    if not run.result.exists():
        seed_everything(5)
        sizes = {"vocabulary_size": len(CHARACTERS) + len(SPECIAL)}
        model = TokenizationRepair(experiment.model, **sizes)
        optimizer = build_optimizer(model, Optimizer())
        save_state(run, TrainState(Progress(step=1), model, optimizer, torch.amp.GradScaler("cpu")))
        write_json(run.result, {"best": {"step": 1}})
    return run


def _characters(folder: Path) -> tuple[str, ...]:
    folder.mkdir(parents=True, exist_ok=True)
    save(characters(), folder / "characters.json")
    return f"data.tokenizer_path={folder}/characters.json", "data.max_length=200"


def _correction(folder: Path, kind: str, model: str, *overrides: str) -> Experiment:
    task = (f"task={{kind: {kind}}}", "evaluation.metric=loss:min")
    writes = f"data.output_tokenizer_path={folder}/tokenizer.json"
    bounds = ("model.max_input_length=250", "model.max_output_length=200")
    return tiny_words(folder, *task, model, *bounds, writes, *overrides)
