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
from toolkit.workloads.entity_disambiguation.data.entities.jsonlines import read_lines
from toolkit.workloads.entity_disambiguation.data.entities.read_folder import check_folder, check_type_systems
from toolkit.workloads.entity_disambiguation.data.entities.sentences import check_unique, parse_sentence
from toolkit.workloads.entity_disambiguation.data.samples.slice_conditions import check_condition

#: Sentences of each file that are checked. That takes a tenth of a second at most.
_SENTENCES = 2000


def sentence_violations(data: EntityMentions, *, is_trained: bool = False) -> Iterator[Violation]:
    """Find missing files of a section, and files with faults in their first sentences.

    is_trained   whether the run has kept database and tokenizer
    """
    for split, path in files_by_split(data).items():
        yield from violation_of(key_of_split(split), _check_sentences, path)
    for name, condition in data.slices.items():
        if name in data.eval_slices:
            yield from violation_of(f"data.slices.{name}", check_condition, name, condition)
    if is_trained:
        return
    database = Path(data.entity_db).expanduser()
    if missing := [*violation_of("data.entity_db", check_folder, database)]:
        yield from missing
    else:
        yield from violation_of("data.type_systems", check_type_systems, database, data.type_systems or ())
    yield from violation_of("data.tokenizer_path", check_local_model, data.tokenizer_path, TOKENIZER)


def _check_sentences(path: Path) -> None:
    found = [parse_sentence(line) for line in islice(read_lines(path), _SENTENCES)]
    if not found:
        raise DataError(f"{path} is empty; expected one JSON object per line, each a sentence")
    # Equal ids are named with the help of numpy, which a login node need not wait for otherwise.
    if len({each.id for each in found}) < len(found):
        check_unique(path, [each.id for each in found], [each.line for each in found])
