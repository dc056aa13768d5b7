"""The `data` section of the spelling tasks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, Self

from toolkit.config.fields import option
from toolkit.data.prepared.section import PreparedSection
from toolkit.data.sources.named_files import Folders, missing_files
from toolkit.workload import Progress, Violation
from toolkit.workloads.spelling.config.noise import NoNoise, noise_kinds

#: Keys of the files that are copied into a prepared set.
_KEPT = ("tokenizer_path", "output_tokenizer_path", "dictionary")
#: The two files of a benchmark. Its folder may be named instead of a file of texts.
CORRUPT, CORRECT = "corrupt.txt", "correct.txt"
_FOLDERS = Folders(keys=("path", "datasets", "validation", "test"), files=(CORRUPT, CORRECT))
#: Keys of a data section that name or limit the texts of a run.
OWN_TEXTS = ("datasets", "dataset_limits", "val_splits", "validation", "test")


@dataclass(frozen=True, slots=True, kw_only=True)
class SpellingTexts(PreparedSection):
    """Texts, and the noise that puts errors into them.

    A file holds one clean text per line; a .jsonl (.ndjson, .json) file holds objects with `sequence` and
    optionally `target_sequence`; a folder holds corrupt.txt and correct.txt, like a benchmark. Only clean
    texts get noise.
    """

    SOURCES: ClassVar[str] = "toolkit.workloads.spelling.data.samples.sources"
    SETS: ClassVar[str] = "toolkit.workloads.spelling.data.samples.prepared:SpellingSet"
    RESUMABLE_STAGE: ClassVar[str] = "make samples"
    datasets: tuple[str, ...] | None = option(None, path=True)
    """Files or folders for training and validation; relative to the working directory."""
    dataset_limits: tuple[int, ...] | None = option(None, minimum=1)
    """Most training texts of each data set, spread evenly over it; null: all."""
    val_splits: tuple[float, ...] | None = option(None, above=0)
    """Validation texts of each data set: a number, or a share below 1; null: a tenth; with `validation`,
    none."""
    split_seed: int = option(0, minimum=0)
    """Decides which texts are for validation, independently of `seed`."""
    path: str | None = option(None, path=True)
    """A single data set, instead of `datasets`."""
    validation: tuple[str, ...] | None = option(None, path=True)
    """Files or folders for validation, instead of a part of the data sets."""
    test: tuple[str, ...] | None = option(None, path=True)
    """Files or folders for testing."""
    noise: Any = option(factory=NoNoise, kinds=noise_kinds)  # noqa: RUF009 - makes a field
    """How errors are put into clean texts."""
    noise_draws: int = option(1, minimum=1, maximum=10000, added=True)
    """How often each text occurs per epoch, with other errors each time."""
    noise_seed: int = option(0, minimum=0)
    """Decides the errors, independently of `seed`."""
    tokenizer_path: str = option(path=True)
    """JSON file of the input tokenizer (`stk spelling tokenizer`)."""
    output_tokenizer_path: str | None = option(None, path=True)
    """JSON file of the output tokenizer, for correction."""
    dictionary: str | None = option(None, path=True)
    """File of words and frequencies (`stk spelling dictionary`), for features of words and real-word
    errors."""
    max_length: int = option(512, minimum=8, maximum=65535)
    """Longest sample in tokens, special tokens included; longer ones are left out."""
    workers: int | None = option(None, minimum=1, identity=False)
    """Processes that prepare the data; null: one per CPU."""
    prepared_dir: str = option("data/prepared", path=True, identity=False)
    """Folder of prepared sets, shared by all runs."""

    def violations(self, *, is_trained: bool = False) -> Iterator[Violation]:
        from toolkit.workloads.spelling.data.samples.checks import content_violations

        missing = [*missing_files(self, "data", _KEPT if is_trained else (), _FOLDERS)]
        yield from missing
        faulty = {each.key for each in missing}
        found = content_violations(self, is_trained=is_trained)
        yield from (each for each in found if each.key not in faulty)

    def warnings(self) -> Iterator[Violation]:
        from toolkit.workloads.spelling.data.samples.checks import noise_warnings

        return noise_warnings(self)

    def source_files(self, progress: Progress) -> Iterator[tuple[Path, str]]:
        sources = import_module(self.SOURCES).find_sources(self, progress)
        return ((part.path, part.sha256) for each in sources for part in each.parts)

    def with_workers(self, count: int) -> Self:
        return self if self.workers is not None else replace(self, workers=count)
