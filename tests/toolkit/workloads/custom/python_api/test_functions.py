"""Functions as jobs, in real processes of this machine."""

from __future__ import annotations

import subprocess
from pathlib import Path
from types import ModuleType

import pytest

import stk
from tests.support.patience import PATIENCE_S
from toolkit.config import check
from toolkit.files import read_json
from toolkit.run.attempts.records import read_attempts
from toolkit.run.run_dir import RunDir
from toolkit.workloads.custom.calling.from_function import experiment_of
from toolkit.workloads.custom.command.kept_files import kept_files


def test_result_is_the_return_value_and_the_same_call_gives_the_same_run(work: ModuleType) -> None:
    run = stk.submit(work.add, 1, b=2.5, cluster="local")
    assert run.wait(PATIENCE_S).result() == {"sum": 3.5, "kinds": ["int", "float"]}
    again = stk.submit(work.add, 1, b=2.5, cluster="local")
    assert again == run
    assert len(read_attempts(RunDir(run.folder))) == 1
    assert stk.plan(work.add, 2).run_id != run.id


def test_text_with_a_reference_arrives_as_it_is(work: ModuleType) -> None:
    text = r"${run.dir} \${run.dir} ${oc.env:HOME} $ {run.dir}"
    run = stk.run(work.add, text, b=".")
    assert run.result()["sum"] == f"{text}."


def test_result_of_a_function_without_return_is_none(work: ModuleType) -> None:
    run = stk.run(work.nothing)
    assert run.status()["state"] == "finished"
    assert run.result() is None


def test_run_failed_shows_the_traceback_of_the_function(work: ModuleType) -> None:
    run = stk.run(work.fails)
    assert run.status()["state"] == "failed"
    with pytest.raises(stk.RunFailed) as raised:
        run.result()
    said = str(raised.value)
    assert "ValueError: the 7th row" in said
    assert 'work.py", line' in said
    assert "in fails" in said
    assert "calling" not in said


def test_function_that_ends_the_process_fails(work: ModuleType) -> None:
    run = stk.run(work.ends, 0)
    assert run.status()["state"] == "failed"
    with pytest.raises(stk.RunFailed, match="ended the process without returning"):
        run.result()


def test_a_result_that_json_cannot_hold_is_refused_with_its_place(work: ModuleType) -> None:
    refused = r"result\['models'\]\[1\] is of type object.*current_run\(\)\.folder"
    run = stk.run(work.odd)
    with pytest.raises(stk.RunFailed, match=refused):
        run.result()
    assert read_json(RunDir(run.folder).failure)["class"] == "input"


def test_function_reads_the_working_folder_and_returns_large_results(work: ModuleType, folder: Path) -> None:
    (folder / "rows.csv").write_text("1,2")
    run = stk.run(work.read, 300_000)
    assert run.result() == ["1,2", *range(300_000)]
    assert (RunDir(run.folder).user_code / "work.py").is_file()


def test_module_not_yet_tracked_by_git_is_code(work: ModuleType, folder: Path) -> None:
    (folder / "README.md").touch()
    for words in (["init", "-q"], ["add", "README.md"]):
        subprocess.run(["git", "-C", folder, *words], check=True)
    kept = kept_files(check(experiment_of(work.nothing, (), {})))
    assert {file.name for file, _ in kept} == {"README.md", "work.py"}


def test_package_outside_the_working_folder_is_kept_and_imported(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = folder / "steps"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "first.py").write_text("from steps import second\ndef go(): return second.WORD\n")
    (package / "second.py").write_text("WORD = 'kept'\n")
    notebooks = folder / "notebooks"
    notebooks.mkdir()
    monkeypatch.chdir(notebooks)
    monkeypatch.syspath_prepend(str(folder))
    import steps.first  # type: ignore[import-not-found]

    run = stk.run(steps.first.go)
    assert run.result() == "kept"
    assert (RunDir(run.folder).user_code / "steps" / "second.py").is_file()


def test_with_several_processes_the_result_is_that_of_rank_0(work: ModuleType) -> None:
    run = stk.run(work.rank, overrides={"resources.tasks_per_node": 2, "name": "both"})
    assert run.id.startswith("both-")
    assert run.result() == ["0", "2"]


def test_killed_function_restarts_from_its_checkpoint(work: ModuleType) -> None:
    run = stk.run(work.goes_on)
    assert run.result() == "saved before"
    assert [each.why for each in read_attempts(RunDir(run.folder))] == ["killed", "finished"]
