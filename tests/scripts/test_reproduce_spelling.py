"""One script submits the whole spelling study, in order, and scores it in the end."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from slurm.submission.batch.job_options import components
from tests.scripts.spelling_study import Study
from tests.scripts.spelling_table import SOURCES, TABLE

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def reproduced(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Study]:
    """After all was submitted; each job has the name of its run."""
    with pytest.MonkeyPatch.context() as patch:
        study = Study(tmp_path_factory.mktemp("study"), patch)
        study.leave_out("spelling_steps")
        done = study.run("reproduce_spelling.sh", "resources.partition=cpu", SMALL="1", STK_REPAIR_RUN="")
        assert done.returncode == 0, done.stderr
        yield study


def test_one_script_submits_the_whole_study_in_order(reproduced: Study) -> None:
    experiments = reproduced.experiments()
    expected = [name for row in TABLE for name in row.names] + list(SOURCES)
    assert sorted(each.name for each in experiments) == sorted(expected)
    place = {each.name: number for number, each in enumerate(experiments)}
    for each in experiments:
        name, resources = each.name, each.resources
        assert (resources.partition, resources.requeue) == ("cpu", "same_job")
        after = SOURCES.get(name, "transformer_encoder_only" if "plus" in name else None)
        assert resources.dependency == "afterok:prepared" + (f":{after}" if after else "")
        # Else the job that scores all would wait for ever for what can never start.
        assert components(resources)[0].options["kill-on-invalid-dep"] == "yes"
        if after is not None:
            assert place[after] < place[name]
        start = each.train.start_from_checkpoint or getattr(each.model, "repair_run", None)
        assert (start is None) == (after is None)
        assert start is None or Path(start).name.rpartition("-")[0] == after
        assert start is None or Path(start).parent == reproduced.home / "experiments"


def test_small_study_asks_for_cpus_and_small_models(reproduced: Study) -> None:
    of_the_table = {name for row in TABLE for name in row.names}
    small = [each for each in reproduced.experiments() if each.name in of_the_table]
    assert {each.name for each in small} == of_the_table
    for experiment in small:
        resources, model = experiment.resources, experiment.model
        assert (resources.nodes, resources.tasks_per_node, resources.gres) == (1, 2, None)
        assert (experiment.train.precision, experiment.data.dataset_limits) == ("fp32", (2000,))
        assert (experiment.train.epochs, experiment.data.noise_draws) == (2, 1)
        assert getattr(model, "hidden_dim", 64) == 64
        layers = [getattr(model, name) for name in dir(model) if name.startswith("num_") and "layers" in name]
        assert layers
        assert max(layers) <= 2


def test_scoring_job_waits_until_all_runs_have_ended(reproduced: Study) -> None:
    names = {each.name for each in reproduced.experiments()}
    asked = (reproduced.home / "calls.sbatch").read_text().splitlines()
    (waits,) = (line.removeprefix("--dependency=afterany:") for line in asked if "--dependency" in line)
    assert set(waits.split(":")) == names
    assert not any(line.startswith("--gres") for line in asked)
    (wrapped,) = (line for line in asked if line.startswith("--wrap="))
    assert "stk evaluate" in wrapped
    assert {Path(word).name.rpartition("-")[0] for word in wrapped.split() if "-" in Path(word).name} >= names


def test_scoring_job_above_the_time_limit_is_refused_and_not_queued(study: Study) -> None:
    partition = "PartitionName=cpu Default=YES MaxTime=01:00:00 MinNodes=0 State=UP TotalNodes=0 Nodes=(null)"
    (study.home / "scontrol").write_text(f"#!/bin/sh\ncase $* in *partition) echo '{partition}' ;; esac\n")
    done = study.run("evaluate_slurm_spelling.sh", "some-run", SMALL="1", STK_TIME="2:00:00")
    assert done.returncode == 3, done.stderr
    assert "above MaxTime 01:00:00 of partition cpu" in done.stderr
    assert not (study.home / "calls.sbatch").exists()
    done = study.run("evaluate_slurm_spelling.sh", "some-run", SMALL="1", STK_TIME="1:00:00")
    assert done.returncode == 0, done.stderr
    assert "--time=1:00:00" in (study.home / "calls.sbatch").read_text()


def test_without_a_refused_run_the_others_are_submitted_and_scored(study: Study) -> None:
    study.leave_out("spelling_steps")
    refused = "configs/spelling/tokenization_repair.yaml"
    done = study.run("reproduce_spelling.sh", SMALL="1", STK_REPAIR_RUN="", FAILS=refused, FAILS_WITH="3")
    assert done.returncode == 3
    assert "Traceback" not in done.stderr
    assert "weights of transformer_encoder_only, which" in done.stderr
    missing = {"transformer_encoder_only", *(name for row in TABLE for name in row.names if "plus" in name)}
    names = {name for row in TABLE for name in row.names} | set(SOURCES)
    submitted = {each.name for each in study.experiments()} - {"transformer_encoder_only"}
    assert submitted == names - missing
    asked = (study.home / "calls.sbatch").read_text().splitlines()
    (waits,) = (line.removeprefix("--dependency=afterany:") for line in asked if "--dependency" in line)
    assert set(waits.split(":")) == submitted


def test_without_slurm_a_failed_run_stops_neither_the_others_nor_the_table(study: Study) -> None:
    (study.home / "scontrol").write_text("#!/bin/sh\nexit 1\n")
    study.leave_out("spelling_steps")
    failing = "configs/spelling/sec_words_nmt_transformer.yaml"
    done = study.run("reproduce_spelling.sh", SMALL="1", STK_REPAIR_RUN="", FAILS=failing)
    assert done.returncode != 0
    experiments = study.experiments()
    # But for the one that would go on from what failed.
    names = {name for row in TABLE for name in row.names} | set(SOURCES)
    assert {each.name for each in experiments} == names - {"finetune_sec_words_nmt_transformer"}
    assert {each.resources.dependency for each in experiments} == {None}
    assert [words[0] for words, _ in study.calls()].index("evaluate") == len(study.calls()) - 1
