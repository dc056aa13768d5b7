"""Runs of earlier versions: they are shown, scored, and go on with their own code to the same bytes."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from slurm.client.topology import scrub
from slurm.config.resources import Resources
from slurm.submission.batch.batch_script import JobPlan
from slurm.submission.job_pickle import pack
from tests.cluster.waiting import wait_until
from tests.old_runs.experiments import reviews
from tests.old_runs.unpacking import SHIPPED, OldRuns, archives, digests, unpack
from tests.support.patience import PATIENCE_S
from toolkit.config import load_resolved, run_id
from toolkit.files import read_json
from toolkit.run.run_dir import RunDir

_ROOT = Path(__file__).parents[2]
_STK = (sys.executable, "-P", "-m", "slurm")

#: As a rank of a job does; shows where the code is that it is about to run.
_OPEN = """
import sys
from submitit.core.utils import DelayedSubmission
job = DelayedSubmission.load(sys.argv[1]).function
print(sys.modules[type(job).__module__].__file__, job.run_dir)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class OldUser:
    """A user with runs of an earlier version below `experiments`."""

    root: Path
    old: OldRuns

    def stk(self, *words: object, code: Path = _ROOT, expected: int = 0, text: str | None = None) -> str:
        """Run the command in the working folder; return what it prints on standard output."""
        return self.call(*_STK, *words, code=code, expected=expected, text=text)

    def call(self, *words: object, code: Path = _ROOT, expected: int = 0, text: str | None = None) -> str:
        environ = {name: value for name, value in scrub().items() if not name.startswith("STK_")}
        environ |= {"PYTHONPATH": str(code), "STK_EXPERIMENT_DIR": str(self.root / "experiments")}
        command = [*map(str, words)]
        done = subprocess.run(
            command,
            cwd=self.root,
            env=environ,
            input=text,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
        )
        assert done.returncode == expected, done.stdout + done.stderr
        return done.stdout

    def json(self, *words: object, **options: Any) -> Any:
        return json.loads(self.stk(*words, "--json", **options))


def user_in(folder: Path, version: str) -> OldUser:
    return OldUser(root=folder, old=unpack(version, folder))


@pytest.fixture(scope="module", params=archives())
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def user(tmp_path: Path, version: str) -> OldUser:
    return user_in(tmp_path, version)


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory, version: str) -> dict[str, str]:
    """Digests of what the interrupted run ends with when its own version goes on with it.

    On this machine: another processor may round sums otherwise.
    """
    user = user_in(tmp_path_factory.mktemp("expected"), version)
    run = user.old.interrupted
    user.stk("run", run.run_id, "--procs", 1, code=run.code)
    return digests(run)


@pytest.fixture(scope="module")
def resumed(tmp_path_factory: pytest.TempPathFactory, version: str) -> OldUser:
    """The interrupted run has been resumed, and has finished."""
    user = user_in(tmp_path_factory.mktemp("resumed"), version)
    run = user.old.interrupted
    mark_code(run)
    assert user.json("resume", run.run_id, "--cluster", "local")["run_id"] == run.run_id
    wait_until(run.result.exists, lambda: str(read_json(run.failure)))
    return user


def mark_code(run: RunDir) -> None:
    """Let a run's own code leave a file when it is imported."""
    package = run.code / "toolkit" / "__init__.py"
    package.write_text(f"{package.read_text()}\nopen({str(mark_of(run))!r}, 'w').close()\n")


def mark_of(run: RunDir) -> Path:
    return run.path / "own-code-was-at-work"


def test_experiments_shipped_by_an_old_version_keep_their_run_ids(user: OldUser) -> None:
    stored = sorted((user.root / SHIPPED).glob("*.yaml"))
    assert len(stored) > 20
    assert [run_id(load_resolved(path)) for path in stored] == [path.stem for path in stored]


def test_status_shows_finished_and_interrupted_old_runs(user: OldUser) -> None:
    interrupted, finished = user.json("status")
    assert (finished["run_id"], finished["state"]) == (user.old.finished.run_id, "finished")
    assert (finished["step"], finished["total_steps"]) == (12, 12)
    assert (interrupted["run_id"], interrupted["state"]) == (user.old.interrupted.run_id, "cancelled")
    assert (interrupted["step"], interrupted["total_steps"]) == (10, 16)
    assert "SIGTERM" in interrupted["reason"]
    assert {"12/12", "10/16"} <= set(user.stk("status").split())


@pytest.mark.slow
def test_a_report_shows_the_recorded_scores(user: OldUser) -> None:
    for run in (user.old.finished, user.old.interrupted):
        assert "loss" in user.stk("report", run.run_id)
        assert "</html>" in run.report_html.read_text()
    recorded = read_json(user.old.finished.result)["metrics"]["test"]
    assert f"{recorded['loss']:.4f}" in user.old.finished.report_html.read_text()
    both = user.stk("report", user.old.finished.run_id, user.old.interrupted.run_id)
    assert {user.old.finished.run_id, user.old.interrupted.run_id} <= set(both.split())


def test_logs_of_an_old_run_are_shown_by_rank(user: OldUser) -> None:
    assert "rank 0 of 2" in user.stk("logs", user.old.interrupted.run_id)
    assert "rank 1 of 2" in user.stk("logs", user.old.interrupted.run_id, "--rank", 1)


@pytest.mark.slow
def test_evaluation_gives_the_recorded_scores_of_the_test_set(user: OldUser) -> None:
    run = user.old.finished
    recorded = read_json(run.result)["metrics"]["test"]
    assert recorded["accuracy"] < 1
    scores = user.json("evaluate", run.run_id)["metrics"]["test"]
    assert scores == {name: pytest.approx(value, rel=1e-5) for name, value in recorded.items()}


@pytest.mark.slow
def test_evaluation_of_another_file_scores_all_of_it(user: OldUser) -> None:
    lines = ["text\tlabel", *reviews(30, first=1000)]
    (user.root / "others.tsv").write_text("\n".join(lines) + "\n")
    answer = user.json("evaluate", user.old.finished.run_id, "--data", "others.tsv")
    assert 0.7 < answer["metrics"]["test"]["accuracy"] < 1
    assert "30" in answer["summary"]


@pytest.mark.slow
def test_a_step_is_replayed_exactly(user: OldUser) -> None:
    assert user.json("replay", user.old.finished.run_id, "--step", 5)["verdict"] in ("exact", "rounding")


def test_cleaning_keeps_the_checkpoints_that_are_needed(user: OldUser) -> None:
    items = user.json("clean", "--keep-last", 0, "--dry-run")["items"]
    paths = [path for item in items for path in item["paths"]]
    assert paths == [str(user.old.finished.checkpoint(9))]


@pytest.mark.slow
def test_interrupted_old_run_resumes_to_the_bytes_of_its_own_version(
    resumed: OldUser, expected: dict[str, str]
) -> None:
    assert mark_of(resumed.old.interrupted).exists()
    assert digests(resumed.old.interrupted) == expected


@pytest.mark.slow
def test_same_command_resumes_an_old_run_with_its_own_code(user: OldUser, expected: dict[str, str]) -> None:
    run = user.old.interrupted
    mark_code(run)
    answer = user.json("run", "misspelt.yaml", "--procs", 2)
    assert (answer["run_id"], answer["state"], answer["restarts"]) == (run.run_id, "finished", 1)
    assert mark_of(run).exists()
    assert digests(run) == expected


def test_old_code_has_the_module_that_the_batch_script_starts(user: OldUser) -> None:
    run = user.old.interrupted
    plan = JobPlan(
        experiment=replace(load_resolved(run.config), resources=Resources(requeue="auto")), run=run
    )
    started = re.findall(r"-m ((?:slurm|toolkit)\S*)", str(plan))
    assert len(started) == 1
    assert run.has_code(started[0])


def test_old_code_opens_the_pickle_of_a_job(user: OldUser) -> None:
    run = user.old.interrupted
    pack(run)
    shown = user.call(sys.executable, "-P", "-c", _OPEN, run.submitit / "job.pkl", code=run.code)
    opened_by, opened_run = shown.split()
    assert Path(opened_by).is_relative_to(run.code)
    assert opened_run == str(run.path)


@pytest.mark.slow
def test_resumed_old_run_can_be_evaluated_and_used_for_detection(resumed: OldUser) -> None:
    run = resumed.old.interrupted
    recorded = read_json(run.result)["metrics"]["test"]
    scores = resumed.json("evaluate", run.run_id, "--procs", 2)["metrics"]["test"]
    assert scores == {name: pytest.approx(value, rel=1e-5) for name, value in recorded.items()}
    labels = resumed.stk("detect", run.run_id, text="the stoen river\n")
    assert len(labels.split()) == 3


@pytest.mark.slow
def test_resumed_old_run_equals_the_interrupted_one_up_to_its_end(resumed: OldUser, user: OldUser) -> None:
    found = resumed.json("diff", resumed.old.interrupted.path, user.old.interrupted.path)
    assert (found["equal"], found["compared"]) == (True, 10)


@pytest.mark.slow
def test_a_run_is_repeated_with_its_own_code(user: OldUser) -> None:
    run = user.old.finished
    user.stk("reproduce", run.run_id, "--output", "repeat.sh")
    user.call("env", f"STK_EXPERIMENT_DIR={user.root}/repeated", "bash", "repeat.sh", "run")
    user.call("env", f"STK_EXPERIMENT_DIR={user.root}/again", *_STK, "run", "reviews.yaml", code=run.code)
    repeated, again = (RunDir(user.root / name / run.run_id) for name in ("repeated", "again"))
    assert read_json(repeated.result)["state"] == "finished"
    assert digests(repeated) == digests(again)
