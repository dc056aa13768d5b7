"""submissions.jsonl and the intent file, also if the submitting process dies."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path

import pytest

from slurm.status import submissions
from slurm.status.submissions import (
    exclusively,
    intend,
    last_submission,
    record,
    record_script,
    recover,
    recover_lost,
    resolve_lost,
)
from tests.slurm.support.fake_slurm import FakeSlurm
from toolkit.run.run_dir import RunDir
from toolkit.system.host import boot


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    folder = tmp_path / "tiny-0123abcd"
    folder.mkdir()
    return RunDir(folder)


def test_a_record_is_read_back_and_the_newest_one_is_last(run: RunDir) -> None:
    first = record(run, cluster="slurm", job_id="101", name="tiny.0", world_size=4)
    second = record(run, cluster="local", job_id="local-77", name="tiny.1")
    assert submissions.submissions(run) == [first, second]
    assert last_submission(run) == second
    assert second.pid == 77
    assert (second.host, second.boot) == (socket.gethostname(), boot())


def test_a_record_keeps_further_facts_for_people(run: RunDir) -> None:
    record(run, cluster="slurm", job_id="101", name="tiny.0", world_size=4)
    line = json.loads(run.submissions.read_text())
    assert line["world_size"] == 4


def test_submission_is_recorded_where_the_system_knows_no_name_of_the_user(
    run: RunDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a container that is started with any user id."""
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("pwd.getpwuid", {}.__getitem__)
    assert record(run, cluster="local", job_id="local-12", name="tiny.0").pid == 12


def test_a_torn_last_line_is_no_submission(run: RunDir) -> None:
    first = record(run, cluster="slurm", job_id="101", name="tiny.0")
    with open(run.submissions, "a") as stream:
        stream.write('{"cluster": "sl')
    assert submissions.submissions(run) == [first]


def test_the_intent_stands_until_the_record(run: RunDir) -> None:
    intend(run, "tiny.0")
    intent = json.loads(run.intent.read_text())
    assert (intent["name"], intent["pid"], intent["host"]) == ("tiny.0", os.getpid(), socket.gethostname())
    record(run, cluster="slurm", job_id="101", name="tiny.0")
    assert not run.intent.exists()


@pytest.mark.parametrize(
    "environ, recorded",
    [
        ({"ENVIRONMENT": "BATCH", "SLURM_JOB_ID": "12"}, ["12"]),
        ({"ENVIRONMENT": "BATCH", "SLURM_JOB_ID": "12", "SLURM_HET_JOB_ID": "11"}, ["11"]),
        # The shell of salloc.
        ({"SLURM_JOB_ID": "12"}, []),
    ],
)
def test_job_of_a_users_script_is_recorded_once(
    run: RunDir, environ: dict[str, str], recorded: list[str]
) -> None:
    for _ in range(2):
        record_script(run, environ)
    assert [(each.job_id, each.is_script) for each in submissions.submissions(run)] == [
        (job_id, True) for job_id in recorded
    ]


def test_job_whose_submitter_died_is_not_recorded_as_a_users_script(run: RunDir) -> None:
    intend(run, "tiny.0")
    record_script(run, {"ENVIRONMENT": "BATCH", "SLURM_JOB_ID": "12", "SLURM_JOB_NAME": "tiny.0"})
    assert submissions.submissions(run) == []


def test_slurm_is_not_asked_without_an_intent(run: RunDir, fake: FakeSlurm) -> None:
    assert resolve_lost(run) is None
    assert fake.calls("squeue") == []


def test_lost_job_is_recorded_with_the_facts_and_resources_of_its_intent(
    run: RunDir, fake: FakeSlurm
) -> None:
    intend(run, "tiny.0", facts={"awaits": "/runs/first"}, resources="nodes: 2\n")
    fake.add("101", name="tiny.0", work_dir=str(run.path))
    assert resolve_lost(run).awaits == "/runs/first"
    assert run.job.read_text() == "nodes: 2\n"


def test_a_job_is_found_through_a_link_to_its_folder(run: RunDir, fake: FakeSlurm, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    intend(run, "tiny.0")
    fake.add("101", name="tiny.0", work_dir=str(tmp_path / "link" / run.run_id))
    assert resolve_lost(run) is not None


def test_task_of_an_array_is_recorded_with_its_array(run: RunDir, fake: FakeSlurm, tmp_path: Path) -> None:
    intend(run, "tiny-0123abcd", task=3, work_dir=str(tmp_path))
    fake.add("101", name="tiny-0123abcd", work_dir=str(tmp_path))
    found = resolve_lost(run)
    assert (found.job_id, found.array) == ("101_3", "tiny-0123abcd")


def test_uneven_job_is_recorded_as_a_whole(run: RunDir, fake: FakeSlurm) -> None:
    intend(run, "tiny.0")
    fake.add("101+0", name="tiny.0", work_dir=str(run.path))
    found = resolve_lost(run)
    assert found.job_id == "101"


def test_intent_without_a_job_is_kept_by_recover_and_dropped_by_resolve_lost(
    run: RunDir, fake: FakeSlurm
) -> None:
    intend(run, "tiny.0")
    assert recover(run) is None
    assert run.intent.exists()
    assert resolve_lost(run) is None
    assert not run.intent.exists()


def test_run_whose_submitter_died_before_sbatch_is_no_longer_being_submitted_after_a_cancel(
    run: RunDir, fake: FakeSlurm
) -> None:
    intend(run, "tiny.0")
    recover_lost(run)
    assert not run.intent.exists()


def test_lock_is_released_after_an_error(run: RunDir, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(submissions, "_LOCK_S", 0.0)
    with pytest.raises(KeyError), exclusively(run):
        raise KeyError
    with exclusively(run):
        pass
