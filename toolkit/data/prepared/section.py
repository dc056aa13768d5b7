"""The `data` section of a task whose prepared sets are PreparedFolders. Imports nothing slow."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

from toolkit.data.sources.source_files import set_place
from toolkit.system.distributions import load_code
from toolkit.workload import DataSection, Progress


class PreparedSection(DataSection):
    """A section whose modules are imported late.

    SOURCES  module with find_sources(data, progress) and describe(data, sources), as `set_place` takes them
    SETS     "module:class" of the prepared sets; the module also has prepare(data, progress)
    """

    __slots__ = ()
    SOURCES: ClassVar[str]
    SETS: ClassVar[str]

    def source_files(self, progress: Progress) -> Iterator[tuple[Path, str]]:
        return ((each.path, each.sha256) for each in import_module(self.SOURCES).find_sources(self, progress))

    def prepared_place(self, progress: Progress) -> tuple[Path, str]:
        module = import_module(self.SOURCES)
        found = module.find_sources(self, progress)
        return set_place(self.prepared_dir, found, module.describe(self, found))

    def prepare(self, progress: Progress) -> Any:
        return import_module(self.SETS.partition(":")[0]).prepare(self, progress)

    def open_prepared(self, path: Path) -> Any:
        return load_code(self.SETS).open(path)
