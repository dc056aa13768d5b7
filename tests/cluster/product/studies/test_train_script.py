"""scripts/train.sh as a batch script and by itself, and the scripts of the studies."""

from __future__ import annotations

import runpy
import shlex
import signal
import sys
from pathlib import Path

import pytest

from tests.cluster.product.user import SCRIPTS, User, assert_same_training, host_numbers, slowly, starts
from tests.cluster.waiting import wait_until
from tests.support.patience import PATIENCE_S
from tests.toolkit.support.bert import write_bert
from toolkit.files import read_json
from toolkit.nlp.exported_files import ExportedFiles
from toolkit.run.run_dir import RunDir, find_runs

from .mentions import write_mentions

TRAIN = SCRIPTS / "train.sh"


@pytest.mark.slow
def test_interrupted_local_run_resumes_as_a_job_on_uneven_hosts(user: User, long_alone: RunDir) -> None:
    """It starts here, through a symbolic link in another folder, and ends on hosts with 2, 1 and 1 tasks."""
    link = user.home / "linked.sh"
    link.symlink_to(TRAIN)
    here = user.start(link, env={"STK_CONFIG": "long.yaml", **slowly(0.12)})
    wait_until(lambda: [*find_runs(user.runs)] != [], lambda: "no run folder")
    run = user.only_run()
    user.wait_for_step(run)
    here.send_signal(signal.SIGTERM)
    assert here.wait(PATIENCE_S) == 130
    (first,) = starts(run)
    assert first["world_size"] == 1
    assert first["why"] == "SIGTERM"

    job_id = user.sbatch("--nodes=3", "--ntasks=4", link, env={"STK_RESUME": run.run_id})
    user.wait_until_finished(run, job_id)
    second = starts(run)[1]
    assert (second["world_size"], second["first_step"]) == (4, first["last_step"])
    assert host_numbers(run) == [0, 0, 1, 2]
    assert_same_training(run, long_alone)


# ---- what is started, shown by a stand-in for stk

_STAND_IN = """\
#!/bin/bash
echo "stk $* (${STK_FORCE_LOCAL-}) in ${SLURM_STEP_ID:+a step}"
"""


@pytest.fixture
def stand_in(user: User) -> dict[str, str]:
    """The environment in which an stk stands before all others that only says how it was called."""
    return {"STK_CONFIG": "quick.yaml", **user.stand_before("stk", _STAND_IN)}


TRUE = ("1", "true", "TRUE", "Yes", "on")
FALSE = ("", "0", "false", "No", "OFF")


def test_in_a_job_ranks_are_tasks_unless_forced_local(user: User, stand_in: dict[str, str]) -> None:
    lines = ["#!/bin/bash", *(f"STK_FORCE_LOCAL={word} {TRAIN} a=b" for word in (*TRUE, *FALSE))]
    script = user.home / "all.sh"
    script.write_text("\n".join(lines) + "\n")
    job_id = user.sbatch("--ntasks=2", script, env=stand_in)
    assert user.wait_for_end(job_id) == "COMPLETED"
    local = [f"stk run quick.yaml a=b ({word}) in " for word in TRUE]
    tasks = [f"stk run quick.yaml a=b ({word}) in a step" for word in FALSE for _ in range(2)]
    # srun says so on standard error when the hosts of the step before are not free yet, and waits.
    lines = (user.home / f"{job_id}.out").read_text().splitlines()
    assert [line for line in lines if not line.startswith("srun: ")] == local + tasks


@pytest.mark.slow
def test_script_in_the_shell_of_an_allocation_trains_there(user: User, stand_in: dict[str, str]) -> None:
    shown = user.run("salloc", "--ntasks=2", TRAIN, env=stand_in).stdout
    assert shown == "stk run quick.yaml () in \n"


@pytest.mark.parametrize("word", ["", "Yes"])
def test_script_outside_a_job_trains_locally(user: User, stand_in: dict[str, str], word: str) -> None:
    environment = {**stand_in, "STK_CONFIG": "a b.yaml", "STK_FORCE_LOCAL": word}
    shown = user.run(TRAIN, "x=y z", env=environment).stdout
    assert shown == f"stk run a b.yaml x=y z ({word}) in \n"


@pytest.mark.parametrize(
    "environment, complaint",
    [
        ({}, "set STK_CONFIG (an experiment file) or STK_RESUME (a run)"),
        ({"STK_CONFIG": "quick.yaml", "STK_RESUME": "quick"}, "both STK_CONFIG and STK_RESUME are set"),
        ({"STK_CONFIG": "quick.yaml", "STK_FORCE_LOCAL": "maybe"}, "STK_FORCE_LOCAL is 'maybe'"),
    ],
)
def test_a_wrong_environment_is_refused_at_once(
    user: User, environment: dict[str, str], complaint: str
) -> None:
    refusal = user.run(TRAIN, env=environment, check=False)
    assert refusal.returncode == 2
    assert refusal.stderr.startswith("error: ")
    assert complaint in refusal.stderr
    assert not user.runs.exists()


def test_script_without_stk_on_path_uses_the_venv_beside_the_code(user: User) -> None:
    """Also through a symbolic link: the code is where the script is, not where the link is."""
    code = user.home / "code"
    user.write_program(code / ".venv" / "bin" / "stk", _STAND_IN)
    script = user.write_program(code / "scripts" / "train.sh", TRAIN.read_text())
    link = user.home / "link.sh"
    link.symlink_to(script)
    bare = {"PATH": "/usr/bin:/bin", "STK_CONFIG": "quick.yaml", "STK_FORCE_LOCAL": ""}
    for each in (script, link):
        assert user.run(each, env=bare).stdout == "stk run quick.yaml () in \n"
    alone = user.write_program(user.home / "alone.sh", TRAIN.read_text())
    refusal = user.run(alone, env=bare, check=False)
    assert (refusal.returncode, "the command stk is not on PATH" in refusal.stderr) == (2, True)
    # A batch script is a copy elsewhere, so there it is the folder from which it was submitted.
    job_id = user.sbatch("scripts/train.sh", cwd=code, env=bare)
    assert user.wait_for_end(job_id) == "COMPLETED"
    assert (user.home / f"{job_id}.out").read_text() == "stk run quick.yaml () in a step\n"


# ---- the scripts of the studies


def finished_runs(user: User, script: str, *words: str) -> dict[str, RunDir]:
    """The runs that a script submits, by their names, once they have finished."""
    user.run(SCRIPTS / script, "train.epochs=1", *words, env=pretend_it_is_installed(user))
    runs: dict[str, RunDir] = {}
    rows = user.stk_json("status")
    for row in rows:
        run = RunDir(Path(row["run_dir"]))
        user.wait_until_finished(run, row["job_id"])
        runs[run.run_id.rpartition("-")[0]] = run
    assert len(runs) == len(rows)
    return runs


def final_scores(run: RunDir) -> set[str]:
    """The names of the scores on the test split."""
    return set(read_json(run.result)["metrics"]["test"])


@pytest.mark.slow
def test_the_bert_study_is_submitted_as_three_jobs(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """On tables as large as the real ones, of a word each, with a BERT that is tiny."""
    # For what the scripts share.
    monkeypatch.syspath_prepend(str(SCRIPTS))
    data = user.home / "data"
    write_bert(data / "minilm")
    for table in ("wiki_topics.csv", "spam_mails.csv", "movie_reviews.tsv"):
        _write_words(data / table, _counts(f"get_{Path(table).stem}"))
    runs = finished_runs(user, "train_slurm_bert.sh", "train.batch_size=2048")
    assert sorted(runs) == ["bert-movies", "bert-spam", "bert-topics"]
    for run in runs.values():
        assert {"accuracy", "text_accuracy", "mcc"} <= final_scores(run)
        assert (ExportedFiles(run).model / "config.json").exists()
        assert (ExportedFiles(run).model / "tokenizer.json").exists()


@pytest.mark.slow
def test_the_disambiguation_study_is_submitted_as_a_job_for_each_model(user: User) -> None:
    """On made-up sentences, with a BERT that is tiny."""
    write_bert(user.home / "data" / "minilm")
    write_mentions(user.home / "data" / "wordnet")
    runs = finished_runs(user, "train_slurm_ned.sh")
    assert sorted(runs) == ["ned-co-mention", "ned-wordnet"]
    for run in runs.values():
        assert {"accuracy", "popularity", "accuracy/unif_NS_TS"} <= final_scores(run)
        assert (run.artifacts / "test_disambig_metrics.csv").exists()


def _counts(script: str) -> dict[str, int]:
    """How many rows of each label a script makes."""
    found: dict[str, int] = runpy.run_path(str(SCRIPTS / script), run_name="counts")["COUNTS"]
    return found


def _write_words(table: Path, counts: dict[str, int]) -> None:
    """A table with so many rows of each label, all of one word."""
    lines = [
        "text,label",
        *(f"{label.split()[0]},{label}" for label, count in counts.items() for _ in range(count)),
    ]
    text = "\n".join(lines) + "\n"
    table.write_text(text.replace(",", "\t") if table.suffix == ".tsv" else text)


def pretend_it_is_installed(user: User) -> dict[str, str]:
    """Give the script a virtual environment that needs nothing: that of the tests, with an idle pip."""
    programs = user.home / "venv" / "bin"
    user.write_program(programs / "pip", "#!/bin/sh\n")
    user.write_program(programs / "python", f'#!/bin/sh\nexec {shlex.quote(sys.executable)} "$@"\n')
    return {
        "VIRTUAL_ENV": str(user.home / "venv"),
        "PATH": f"{programs}:{user.environment['PATH']}",
        "STK_DATA_DIR": str(user.home / "data"),
        "STK_TASKS_PER_NODE": "1",
    }
