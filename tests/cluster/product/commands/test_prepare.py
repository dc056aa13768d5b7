"""Preparation as a job: after each kind of stop it is requeued and keeps what is done."""

from __future__ import annotations

import json
import re
from itertools import cycle, islice
from pathlib import Path

import pytest

from tests.cluster.product.user import User
from tests.cluster.waiting import wait_until
from tests.toolkit.support.tiny import SIZES
from tests.toolkit.workloads.spelling.spelling_files import texts, write_spelling_experiment, write_texts
from toolkit.run.run_dir import RunDir

pytestmark = pytest.mark.slow

#: Enough for two attempts to be stopped in the middle, however long the controller takes.
TEXTS = 60_000


@pytest.fixture
def config(user: User) -> Path:
    path = write_spelling_experiment(user.home / "spelling")
    # Not made one by one: what they say does not matter, their number does.
    write_texts(path.parent / "texts.txt", list(islice(cycle(texts(2000)), TEXTS)))
    return path


def shards(config: Path) -> set[str]:
    """The shards that are done."""
    return {file.name for file in (config.parent / "prepared").glob(".*.parts/shard-*.npz")}


def test_requeued_and_preempted_preparation_keeps_the_finished_shards(user: User, config: Path) -> None:
    host = user.cluster.hosts[0]
    resources = ("resources.partition=preemptible0", f"resources.nodelist={host}", "resources.gres=gpu:4")
    job = user.stk_json(
        "prepare", str(config), "data.workers=2", *resources, "--cluster", "slurm", "--cpus", "2"
    )
    log = Path(job["log"])

    def wait_for(stop: str, done: set[str]) -> set[str]:
        """Return the shards when some are done that were not."""
        wait_until(lambda: bool(shards(config) - done), lambda: f"{stop}: {log.read_text()}")
        return shards(config)

    first = wait_for("no shard", set())
    # What Slurm sends before a time limit: to the batch script alone.
    user.run("scancel", "--batch", "--signal=USR2", job["job_id"])
    wait_until(lambda: restarts(user, job["job_id"]) == 1, lambda: f"not requeued: {log.read_text()}")
    # The attempt before may leave another shard on its way out.
    wait_until(lambda: starts(log.read_text()) == 2, lambda: f"not started again: {log.read_text()}")
    wait_for("no new shard", shards(config) | first)
    # However fast it is, it must still be at work when it is preempted. Slurm lets it go on for that.
    user.run("scancel", "--full", "--signal=STOP", job["job_id"])
    second = shards(config)
    user.sbatch("--partition=urgent", f"--nodelist={host}", "--exclusive", "--time=5", "--wrap=true")
    wait_until(lambda: restarts(user, job["job_id"]) == 2, lambda: "not preempted")
    assert first <= second
    assert user.wait_for_end(job["job_id"]) == "COMPLETED", log.read_text()
    check_log(log.read_text(), kept=len(second))
    (row,) = user.stk_json("status", job["folder"])
    assert (row["state"], RunDir(Path(job["folder"])).result.exists()) == ("finished", True)
    assert not user.stk_json("prepare", str(config))["built"]


def restarts(user: User, job_id: str) -> int:
    return int(user.cluster.job(job_id)["Restarts"])


def starts(log: str) -> int:
    return log.count("preparing on ")


def check_log(text: str, kept: int) -> None:
    """Each attempt said so, and the last one read only what those before had left."""
    assert starts(text) == 3, text
    assert "Traceback" not in text, text
    assert "leaked" not in text, text
    read = re.search(r"^([\d,]+) texts read in ", text, re.MULTILINE)
    assert read is not None, text
    total = TEXTS + SIZES["test"]
    assert 0 < int(read[1].replace(",", "")) <= total - 2000 * (kept - 1), json.dumps(text)
