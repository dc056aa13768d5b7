"""A study on the real cluster: what a run that fails leaves of it."""

from __future__ import annotations

import re
import shutil

import pytest

from tests.cluster.product.user import SCRIPTS, User
from tests.scripts.study_files import pretend_prepared
from tests.toolkit.workloads.spelling.benchmarks.folders import word_benchmark
from tests.toolkit.workloads.spelling.spelling_files import write_spelling_experiment

from .test_train_script import pretend_it_is_installed

pytestmark = pytest.mark.slow

FAILS = {"STK_FAULTS": "raise at=forward step=1"}


def test_study_table_is_written_although_a_run_failed(user: User) -> None:
    """One run finishes, one fails, and what waits for that never starts; the scoring job starts."""
    texts = write_spelling_experiment(user.home / "texts")
    shutil.copy(texts, user.home)
    ends = ("train.epochs=1", "resources.requeue=same_job", "resources.max_crashes=0")
    trained, first = user.submit("tiny_words", *ends)
    failed, second = user.submit("tiny_words", *ends, "name=fails", env=FAILS)
    waits = (f"resources.dependency=afterok:{second}", "resources.sbatch.kill-on-invalid-dep=yes")
    never, third = user.submit("tiny_words", *ends, *waits, "name=waits")
    environment = {
        **pretend_it_is_installed(user),
        "STUDY_AFTER": f"{first}:{second}:{third}",
        "STK_BENCHMARKS": str(word_benchmark(user.home / "benchmarks")),
        "STK_GRES": "null",
        "STK_TIME": "10:00",
    }
    spelling = pretend_prepared(user.home / "data")
    shutil.copy(user.home / "texts" / "dictionary.txt", spelling / "dictionaries" / "merged_train.txt")
    runs = [run.path for run in (trained, failed, never)]
    shown = user.run(SCRIPTS / "evaluate_slurm_spelling.sh", *runs, env=environment).stdout
    (scores,) = re.findall(r"^job +(\d+)", shown, re.MULTILINE)
    user.wait_until_finished(trained, first)
    ended = [user.wait_for_end(job) for job in (second, third, scores)]
    log = (user.runs / "spelling_scores.log").read_text(encoding="utf-8")
    # The scoring job fails because it could not score all runs.
    assert ended == ["FAILED", "CANCELLED", "FAILED"], log
    table = (user.runs / "spelling_scores.md").read_text(encoding="utf-8")
    assert trained.run_id in table
    assert "out of dictionary" in table
    for run in (failed, never):
        assert run.run_id in log
        assert run.run_id not in table
