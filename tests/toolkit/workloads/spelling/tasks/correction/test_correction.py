"""The scores and the files of corrections."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

import numpy as np
import pytest
import torch
from torch import nn

from tests.toolkit.workloads.spelling.conftest import OnBenchmark
from tests.toolkit.workloads.spelling.spelling_files import tiny_corrections, tiny_word_corrections
from toolkit.errors import DataError
from toolkit.task import Evaluation, lists_of
from toolkit.testing.contract import evaluated
from toolkit.workloads.spelling.data.samples import layout
from toolkit.workloads.spelling.files import SpellingFiles
from toolkit.workloads.spelling.models.batches import CorrectionBatch
from toolkit.workloads.spelling.models.search import Written
from toolkit.workloads.spelling.tasks.correction.base import CorrectionTask
from toolkit.workloads.spelling.tasks.correction.batches import units_of
from toolkit.workloads.spelling.tasks.correction.sec_words_nmt import SecWordsNmtTask
from toolkit.workloads.spelling.tokenizers.make_tokenizer import characters, save
from toolkit.workloads.spelling.tokenizers.tokenizer import load_tokenizer

CPU = torch.device("cpu")
CORRUPT = ["the stoen under river", "", "garden " * 110, "river, window", "stoen the"]
CORRECT = ["the stone over river", "", "garden " * 110, "river, window", "stone the"]
#: Output of the model for each text; None: without an end.
WRITTEN: dict[str, str | None] = {
    "the stoen under river": "the stone under river",
    "river, window": None,
    "stoen the": "stone the garden",
}

Made = Callable[..., CorrectionTask]


@pytest.fixture
def made(on_benchmark: OnBenchmark) -> Made:
    return lambda kind, *overrides, correct=CORRECT: on_benchmark(kind, CORRUPT, correct, *overrides)


def write_instead(task: CorrectionTask, said: dict[str, str | None]) -> None:
    """Make the task write this with any model."""
    output, reads = (
        load_tokenizer(task.prepared / name) for name in (layout.OUTPUT_TOKENIZER, layout.TOKENIZER)
    )
    of_words = isinstance(task, SecWordsNmtTask)

    def unit(text: str | None) -> Written:
        return None if text is None else tuple(output.encode_words(text)[0])

    def write(model: nn.Module, batch: CorrectionBatch, texts: Sequence[str]) -> list[list[Written]]:
        read = [reads.decode(row) for row in batch.tokens.tolist()]
        if of_words:
            return [[unit(said.get(word, word)) for word in text.split()] for text in read]
        return [[unit(said[text])] for text in read]

    task.write = write  # type: ignore[method-assign]


def scored(task: CorrectionTask) -> Evaluation:
    return evaluated(task, task.model(), "test", batch_size=2)


def test_written_texts_are_compared_with_the_right_texts(made):
    task = made(tiny_corrections)
    write_instead(task, WRITTEN)
    metrics = task.metrics("test", scored(task))
    # Restored: stone, twice. Not restored: under. Spoilt: the, with the added word garden.
    assert (metrics["precision"], metrics["recall"]) == (pytest.approx(2 / 3), pytest.approx(2 / 3))
    assert metrics["correction_f1"] == pytest.approx(2 / 3)
    assert metrics["sequence_accuracy"] == pytest.approx(1 / 3)
    assert metrics["mned"] > 0


def test_corrections_have_a_line_for_each_line_of_the_file(made, run):
    task = made(tiny_corrections)
    write_instead(task, WRITTEN)
    task.write_report(run, "test", scored(task))
    written = SpellingFiles(run).corrections("test").read_text(encoding="utf-8").splitlines()
    assert written == ["the stone under river", "", CORRUPT[2].strip(), "river, window", "stone the garden"]
    facts = json.loads(SpellingFiles(run).correction_counts("test").read_text(encoding="utf-8"))
    assert (facts["texts"], facts["left_out"], facts["counts"]["unended"]) == (3, 2, 1)
    assert facts["counts"]["true_positives"] == 2


def test_words_without_an_end_stay_unchanged(made, run):
    task = made(tiny_word_corrections)
    write_instead(task, {"stoen": "stone", "under": None})
    task.write_report(run, "test", scored(task))
    written = SpellingFiles(run).corrections("test").read_text(encoding="utf-8").splitlines()
    assert written == ["the stone under river", "", CORRUPT[2].strip(), "river, window", "stone the"]


class Endless:
    """A model that never writes the end token; it records the number of rows of each step."""

    def __init__(self, count: int) -> None:
        self._count = count
        self.steps: list[int] = []

    def __len__(self) -> int:
        return self._count

    def reading(self, _: object) -> Endless:
        return self

    begin = take = lambda self, *_: self

    def advance(self, tokens: torch.Tensor) -> tuple[torch.Tensor, Endless]:
        self.steps.append(len(tokens))
        return torch.eye(30)[torch.full((len(tokens),), 7)], self


def test_generation_without_an_end_token_stops_at_about_twice_the_text(made):
    task = made(tiny_corrections)
    texts = ["the river", "stone"]
    output = load_tokenizer(task.prepared / layout.OUTPUT_TOKENIZER)
    most = [2 * len(output.encode_words(text)[0]) + 16 for text in texts]
    model = Endless(2)
    assert task.write(model, None, texts) == [[None], [None]]
    assert model.steps == [2] * min(most) + [1] * (max(most) - min(most))


def test_the_written_texts_of_the_model_are_scored(made):
    task = made(tiny_word_corrections)
    model = task.model().eval()
    batch = task.collate("test", np.arange(3), CPU)
    with torch.no_grad():
        ids = lists_of(task.score(model, batch).outputs["written"])
    units = task.write(model, batch.read, [text for text, _ in batch.texts])
    assert [len(each) for each in units] == [len(text.split()) for text, _ in batch.texts]
    assert [units_of(each, task._output.end) for each in ids] == [
        [unit or () for unit in each] for each in units
    ]


def test_targets_that_are_too_long_are_left_out_and_counted(made):
    task = made(tiny_corrections, "model.max_output_length=20")
    lengths = [task.splits["train"].sizes(layout.OUTPUTS, np.arange(len(task.splits["train"])))]
    whole = made(tiny_corrections)
    missing = len(whole.splits["train"]) - len(task.splits["train"])
    assert missing > 0
    assert max(map(max, lengths)) == 19
    assert f"left out: {missing} texts of train (their targets have more tokens" in task.summary
    assert len(task.splits["test"]) == len(whole.splits["test"])


def test_max_output_length_limits_the_sum_over_all_words(made):
    task = made(tiny_word_corrections, "model.max_output_length=20")
    samples = task.splits["train"]
    batch = task.collate("train", np.arange(len(samples)), CPU).read
    assert int((batch.labels != -1).sum(1).max()) == 20


def test_a_training_split_without_usable_texts_is_refused(made):
    with pytest.raises(DataError, match=r"no text of train is left.*model\.max_output_length, 2 with"):
        made(tiny_corrections, "model.max_output_length=2")


def test_targets_with_another_number_of_words_are_scored_but_not_learnt(made):
    task = made(tiny_word_corrections, correct=["the stone over", "", "", "river, window", "stone the"])
    batch = task.collate("test", np.arange(3), CPU).read
    assert (batch.labels != -1).any(1).tolist() == [False, True, True]
    assert scored(task).sums[task.score_sums.index("lines")] == 3


def test_labels_are_not_accepted_as_corrections(made):
    labels = ["0 1 1 0", "", " ".join(["0"] * 110), "0 0", "1 0"]
    with pytest.raises(DataError, match="has labels, expected texts"):
        made(tiny_corrections, correct=labels)


def test_a_tokenizer_that_writes_no_spaces_is_refused_for_texts(made, tmp_path):
    save(characters(), tmp_path / "characters.json")
    with pytest.raises(DataError, match="writes words without the spaces"):
        made(tiny_corrections, f"data.output_tokenizer_path={tmp_path}/characters.json")


def test_a_tokenizer_of_characters_is_refused_for_words(made, tmp_path):
    save(characters(), tmp_path / "characters.json")
    with pytest.raises(DataError, match="reads characters"):
        made(tiny_word_corrections, f"data.tokenizer_path={tmp_path}/characters.json")


def test_the_report_of_validation_has_counts_but_no_texts(made, run):
    task = made(tiny_corrections)
    task.write_report(run, "validation", evaluated(task, task.model(), "validation"))
    assert not SpellingFiles(run).corrections("validation").exists()
    facts = json.loads(SpellingFiles(run).correction_counts("validation").read_text(encoding="utf-8"))
    assert facts["metrics"].keys() == {"loss", "token_accuracy", "sequence_accuracy"}
    assert "lines" not in facts["counts"]
