"""A script of the study submits what the reference's table says, and nothing if no approach is chosen."""

from __future__ import annotations

import pytest

from slurm.config.world_size import world_size
from slurm.submission.batch.batch_script import JobPlan
from tests.scripts.spelling_study import Study
from tests.scripts.spelling_table import IDS, TABLE, Row
from toolkit.config.schema import Experiment
from toolkit.run.run_dir import RunDir


@pytest.mark.slow
@pytest.mark.parametrize("row", TABLE, ids=IDS)
def test_a_script_submits_what_the_table_says(study: Study, row: Row) -> None:
    study.leave_out("spelling_steps")
    done = study.run(row.script, "resources.partition=gpu", APPROACH=row.approach)
    assert done.returncode == 0, done.stderr
    ((words, _),) = study.calls()
    assert words[0] == ("sweep" if len(row.names) > 1 else "submit")
    experiments = study.experiments()
    assert tuple(each.name for each in experiments) == row.names
    for experiment in experiments:
        compare(row, experiment)
        plan = JobPlan(experiment=experiment, run=RunDir(study.home / "run"))
        asked = {
            "nodes": row.nodes,
            "ntasks-per-node": 4,
            "gres": "gpu:4",
            "time": "24:00:00",
            "partition": "gpu",
        }
        assert {f"#SBATCH --{name}={value}" for name, value in asked.items()} <= set(str(plan).splitlines())
    if len(experiments) > 1:
        assert [each.model.word_features for each in experiments] == [True, False]


def compare(row: Row, experiment: Experiment) -> None:
    """What the table says of each run, and of all of them."""
    resources, train, model = experiment.resources, experiment.train, experiment.model
    assert world_size(resources) == row.gpus
    assert train.batch_max_length == row.batch_max_length
    # So a GPU has the reference's share of a step: 12,288, 8,192, 2,730, 2,048 or 1,638 tokens.
    assert train.logical_ranks == row.gpus
    assert {name: getattr(model, name) for name in row.model} == row.model
    assert getattr(model, "hidden_dim", 512) == 512
    assert (train.epochs, experiment.data.noise_draws) == (row.epochs, 20)
    # Together as often as in the reference's only epoch.
    assert (train.epochs * train.log_per_epoch, train.epochs * train.eval_per_epoch) == (200, 20)
    assert (train.precision, train.bucket_span, experiment.seed) == ("fp16", 4, 22)
    assert experiment.data.dataset_limits == (100_000_000,)
    optimizer, scheduler = experiment.optimizer, experiment.lr_scheduler
    assert (optimizer.kind, optimizer.lr, optimizer.weight_decay) == ("adamw", 1e-4, 0.01)
    assert (scheduler.kind, scheduler.warmup) == ("step", 0.05)
    assert (scheduler.gamma, scheduler.step_at) == (0.1, (0.75, 0.9))


def test_runs_train_locally_without_slurm(study: Study) -> None:
    (study.home / "scontrol").write_text("#!/bin/sh\nexit 1\n")
    study.run("sec_nmt", APPROACH="transformer")
    assert [words[0] for words, _ in study.calls()] == ["run"]


def test_ctrl_c_in_a_run_ends_the_study(study: Study) -> None:
    (study.home / "scontrol").write_text("#!/bin/sh\nexit 1\n")
    done = study.run("docnn", FAILS="run", FAILS_WITH="130")
    assert done.returncode == 130
    assert [words[0] for words, _ in study.calls()] == ["run"]


def test_settings_of_the_caller_override_the_script(study: Study) -> None:
    study.run("sec_nmt", "train.epochs=7", APPROACH="transformer", STK_NODES="1", STK_NUM_DECODER_LAYERS="3")
    (experiment,) = study.experiments()
    assert (experiment.resources.nodes, experiment.model.num_decoder_layers) == (1, 3)
    assert (experiment.train.epochs, experiment.model.num_encoder_layers) == (7, 6)


SCRIPTS_OF_TASKS = sorted({row.script for row in TABLE} | {"finetune"})


@pytest.mark.parametrize(
    "script, approach",
    [
        *((script, "cnn") for script in SCRIPTS_OF_TASKS),
        *(("sed_words", each) for each in (None, "", "gnn gnn")),
    ],
)
def test_unknown_approach_is_refused_with_the_known_ones(
    study: Study, script: str, approach: str | None
) -> None:
    done = study.run(script, **({} if approach is None else {"APPROACH": approach}))
    assert (done.returncode, study.calls()) == (2, [])
    known = {row.approach for row in TABLE if row.script == script}
    assert {"APPROACH", *known} <= set(done.stderr.split())


def test_small_must_be_a_boolean(study: Study) -> None:
    done = study.run("sec_nmt", APPROACH="transformer", SMALL="perhaps")
    assert (done.returncode, study.calls()) == (2, [])
    assert "SMALL" in done.stderr
    assert "perhaps" in done.stderr
    study.run("sec_nmt", APPROACH="transformer", SMALL="0")
    assert study.experiments()[0].resources.gres == "gpu:4"


@pytest.mark.parametrize(
    "script, approach, variable",
    [
        ("tokenization_repair_plus", "plus_sed", "STK_REPAIR_RUN"),
        ("finetune", "sed_words", "STK_START_FROM_CHECKPOINT"),
    ],
)
def test_script_without_the_run_it_starts_from_is_refused(
    study: Study, script: str, approach: str, variable: str
) -> None:
    done = study.run(script, APPROACH=approach, **{variable: ""})
    assert (done.returncode, study.calls()) == (2, [])
    assert variable in done.stderr
