"""An import error is recorded as a failure with its rank and stack trace."""

from __future__ import annotations

import subprocess
import sys

import pytest

from toolkit.files import read_json
from toolkit.run.failure.import_errors import record_import_error
from toolkit.run.run_dir import RunDir
from toolkit.system.world import World

_SCRIPT = """
import sys
from pathlib import Path
from toolkit.run.failure.import_errors import record_import_error
from toolkit.run.run_dir import RunDir
from toolkit.system.world import World
world = World(rank=0, size=1, local_rank=0, local_size=1, nonce="n")
with record_import_error(RunDir(Path(sys.argv[1])), world):
    import missing_module
"""


def test_an_import_error_is_written_to_the_log_and_the_failure_record(run: RunDir) -> None:
    world = World(rank=2, size=4, local_rank=2, local_size=4, nonce="n")
    with pytest.raises(ModuleNotFoundError), record_import_error(run, world):
        import missing_module  # type: ignore[import-not-found]  # noqa: F401
    assert "No module named 'missing_module'" in run.log("n", 2).read_text()
    failure = read_json(run.failure)
    assert (failure["class"], failure["rank"], failure["phase"]) == ("import", 2, "import")
    assert "Install what is missing" in failure["advice"]


def test_a_log_that_receives_standard_error_has_the_import_error_once(run: RunDir) -> None:
    run.logs.mkdir()
    with run.log("n", 0).open("ab") as log:
        subprocess.run([sys.executable, "-c", _SCRIPT, str(run.path)], stderr=log, check=False)
    assert run.log("n", 0).read_text().count("No module named") == 1


def test_an_unwritable_run_folder_does_not_hide_the_import_error(run: RunDir) -> None:
    run.logs.write_text("no folder")
    run.ranks("n").parent.write_text("no folder")
    world = World(rank=0, size=1, local_rank=0, local_size=1, nonce="n")
    with pytest.raises(ModuleNotFoundError), record_import_error(run, world):
        import missing_module  # noqa: F401
