"""Errors in the sentences and the database of an experiment, found before its job is submitted."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from toolkit.data.sources.named_files import violation_of
from toolkit.data.sources.split_files import files_by_split, key_of_split
from toolkit.errors import DataError
from toolkit.nlp.hub import check_local_model
from toolkit.nlp.tokenizers.tokenizer_files import TOKENIZER
from toolkit.workload import Violation
from toolkit.workloads.entity_disambiguation.config import EntityMentions
from toolkit.workloads.entity_disambiguation.data.entities.sentences import read_sentences

#: Sentences of each file that are checked. That takes about ten milliseconds.
_SENTENCES = 2000


def sentence_violations(data: EntityMentions, *, is_trained: bool = False) -> Iterator[Violation]:
    """Find missing files of a section, and files with faults in their first sentences.

    is_trained   whether the run has kept database and tokenizer
    """
    for split, path in files_by_split(data).items():
        yield from violation_of(key_of_split(split), _check_sentences, path)
    if is_trained:
        return
    if not Path(data.entity_db).expanduser().is_dir():
        problem = f"{data.entity_db} is not a folder, expected the folder of a database (`stk entities`)"
        yield Violation(key=("data", "entity_db"), problem=problem)
    yield from violation_of("data.tokenizer_path", check_local_model, data.tokenizer_path, TOKENIZER)


def _check_sentences(path: Path) -> None:
    if not any(True for _ in islice(read_sentences(path), _SENTENCES)):
        raise DataError(f"{path} is empty; expected one JSON object per line, each a sentence")
