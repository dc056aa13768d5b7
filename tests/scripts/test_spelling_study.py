"""The spelling study's scripts submit what the reference's table says, and nothing where none is chosen."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from slurm.plan import JobPlan
from tests.readme import ROOT
from toolkit.config import load
from toolkit.config.processes import world_size
from toolkit.config.schema import Experiment
from toolkit.rundir import RunDir

SCRIPTS = ROOT / "scripts"
#: Stands for stk: notes how it was called, and what a config would read.
STK = """\
#!/usr/bin/env python3
import json, os, sys
seen = {name: value for name, value in os.environ.items() if name.startswith("STK_")}
with open(os.environ["CALLS"], "a") as calls:
    print(json.dumps([sys.argv[1:], seen]), file=calls)
"""
#: What scripts/prepare_spelling makes; it leaves alone what is there.
PREPARED = (
    "text/train.txt",
    "dictionaries/merged_train.txt",
    "misspellings/train_misspellings.json",
    *(f"tokenizers/{name}.json" for name in ("bpe_1000", "bpe_10000", "characters", "bytes")),
    *(
        f"benchmarks/tokenization_repair/wiki_{noise}/{split}/corrupt.txt"
        for noise in ("artificial", "realistic")
        for split in ("dev", "test")
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A line of the reference's table of scripts, where our keys are those that it means."""

    script: str
    approach: str
    names: tuple[str, ...]
    nodes: int
    gpus: int
    batch_max_length: int
    model: Mapping[str, Any]


def _ablated(name: str) -> tuple[str, str]:
    return f"{name}_features_True", f"{name}_features_False"


TABLE = [
    Row(
        script="sed_words", approach="gnn", names=_ablated("sed_words_gnn"),
        nodes=2, gpus=8, batch_max_length=98304, model={"kind": "graph", "num_layers": 6},
    ),
    Row(
        script="sed_words", approach="transformer", names=_ablated("sed_words_transformer"),
        nodes=2, gpus=8, batch_max_length=98304, model={"kind": "transformer", "num_layers": 6},
    ),
    # The reference forgets how many nodes the second of these takes.
    Row(
        script="sed_sequence", approach="gnn", names=_ablated("sed_sequence_gnn"),
        nodes=3, gpus=12, batch_max_length=98304, model={"kind": "graph", "num_layers": 6},
    ),
    Row(
        script="sed_sequence", approach="transformer", names=_ablated("sed_sequence_transformer"),
        nodes=2, gpus=8, batch_max_length=98304, model={"kind": "transformer", "num_layers": 6},
    ),
    Row(
        script="sec_nmt", approach="transformer", names=("transformer_sec_nmt",),
        nodes=3, gpus=12, batch_max_length=32768,
        model={"kind": "nmt", "num_encoder_layers": 6, "num_decoder_layers": 6},
    ),
    Row(
        script="sec_nmt", approach="transformer_with_tokenization_repair",
        names=("transformer_sec_with_tokenization_repair_nmt",),
        nodes=4, gpus=16, batch_max_length=32768,
        model={"kind": "nmt", "num_encoder_layers": 12, "num_decoder_layers": 6},
    ),
    Row(
        script="sec_words_nmt", approach="transformer", names=("transformer_sec_words_nmt",),
        nodes=4, gpus=16, batch_max_length=32768,
        model={"kind": "words_nmt", "num_encoder_layers": 6, "num_decoder_layers": 6},
    ),
    Row(
        script="tokenization_repair", approach="encoder_only", names=("transformer_encoder_only",),
        nodes=2, gpus=8, batch_max_length=98304,
        model={"kind": "tokenization_repair", "num_encoder_layers": 6},
    ),
    Row(
        script="tokenization_repair_plus", approach="plus_sed", names=("tokenization_repair_plus_sed",),
        nodes=3, gpus=12, batch_max_length=98304, model={"num_word_layers": 6, "num_sec_layers": 0},
    ),
    Row(
        script="tokenization_repair_plus", approach="plus_sed_plus_sec",
        names=("tokenization_repair_plus_sed_plus_sec",),
        nodes=5, gpus=20, batch_max_length=32768, model={"num_word_layers": 6, "num_sec_layers": 6},
    ),
]  # fmt: skip
IDS = [f"{row.script}-{row.approach}" for row in TABLE]


class Study:
    """A folder in which the scripts can be run, with a stand-in for stk."""

    def __init__(self, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.home = home
        self._monkeypatch = monkeypatch
        for name in PREPARED:
            (home / "data" / "spelling" / name).parent.mkdir(parents=True, exist_ok=True)
            (home / "data" / "spelling" / name).touch()
        self._program("stk", STK)
        self._program("scontrol", "#!/bin/sh\nexit 0\n")
        self._program("environment/bin/pip", "#!/bin/sh\nexit 0\n")
        self.environment = {
            "PATH": f"{home}:{os.environ['PATH']}",
            "CALLS": str(home / "calls"),
            "VIRTUAL_ENV": str(home / "environment"),
            "STK_DATA_DIR": str(home / "data"),
            "STK_EXPERIMENT_DIR": str(home / "experiments"),
            "STK_REPAIR_RUN": str(home / "experiments" / "repair"),
        }

    def _program(self, name: str, text: str) -> None:
        path = self.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)

    def run(self, script: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        (self.home / "calls").unlink(missing_ok=True)
        return subprocess.run(
            [SCRIPTS / f"train_slurm_{script}.sh", *arguments],
            env={**self.environment, **environment},
            capture_output=True,
            text=True,
        )

    def calls(self) -> list[tuple[list[str], dict[str, str]]]:
        """What stk was called with, and the variables that it saw; not what only shows."""
        path = self.home / "calls"
        lines = path.read_text().splitlines() if path.exists() else []
        return [(words, seen) for words, seen in map(json.loads, lines) if words[0] != "status"]

    def experiments(self) -> list[Experiment]:
        """The experiments of all runs that were submitted."""
        return [each for words, seen in self.calls() for each in self._of(words[1], words[2:], seen)]

    def _of(self, config: str, overrides: list[str], seen: Mapping[str, str]) -> Iterator[Experiment]:
        with self._monkeypatch.context() as patch:
            patch.chdir(ROOT)
            for name, value in seen.items():
                patch.setenv(name, value)
            for combination in combinations(overrides):
                yield load(Path(config), combination)


def combinations(overrides: list[str]) -> list[list[str]]:
    """The overrides of each run of a sweep over one key."""
    for place, each in enumerate(overrides):
        key, _, values = each.partition("=")
        if key == "model.word_features":
            rest = overrides[:place] + overrides[place + 1 :]
            return [[*rest, f"{key}={value}"] for value in values.split(",")]
    return [overrides]


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Study:
    return Study(tmp_path, monkeypatch)


@pytest.mark.parametrize("row", TABLE, ids=IDS)
def test_a_script_submits_what_the_table_says(study: Study, row: Row) -> None:
    done = study.run(row.script, APPROACH=row.approach)
    assert done.returncode == 0, done.stderr
    (call,) = study.calls()
    assert call[0][0] == ("sweep" if len(row.names) > 1 else "submit")
    experiments = study.experiments()
    assert tuple(each.name for each in experiments) == row.names
    for experiment in experiments:
        compare(row, experiment)
    if len(experiments) > 1:
        assert [each.model.word_features for each in experiments] == [True, False]


def compare(row: Row, experiment: Experiment) -> None:
    """What the table says of each run, and of all of them."""
    resources, train, model = experiment.resources, experiment.train, experiment.model
    assert (resources.nodes, resources.tasks_per_node, resources.gres) == (row.nodes, 4, "gpu:4")
    assert (world_size(resources), resources.time) == (row.gpus, "24:00:00")
    assert train.batch_max_length == row.batch_max_length
    # So a GPU has the reference's share of a step: 12,288, 8,192, 2,730, 2,048 or 1,638 tokens.
    assert train.logical_ranks == row.gpus
    assert {name: getattr(model, name) for name in row.model} == row.model
    assert getattr(model, "hidden_dim", 512) == 512
    assert (train.epochs, train.log_per_epoch, train.eval_per_epoch) == (1, 200, 20)
    assert (train.precision, train.bucket_span, experiment.seed) == ("fp16", 4, 22)
    assert experiment.data.dataset_limits == (100_000_000,)
    optimizer, scheduler = experiment.optimizer, experiment.lr_scheduler
    assert (optimizer.kind, optimizer.lr, optimizer.weight_decay) == ("adamw", 1e-4, 0.01)
    assert (scheduler.kind, scheduler.warmup) == ("step", 0.05)
    assert (scheduler.gamma, scheduler.step_at) == (0.1, (0.75, 0.9))


@pytest.mark.parametrize("row", TABLE, ids=IDS)
def test_the_batch_script_asks_for_it(study: Study, row: Row) -> None:
    study.run(row.script, "resources.partition=gpu", APPROACH=row.approach)
    for experiment in study.experiments():
        run = RunDir(study.home / "run")
        script = str(JobPlan(experiment=experiment, resources=experiment.resources, run=run))
        asked = [line for line in script.splitlines() if line.startswith("#SBATCH")]
        for option in (
            f"nodes={row.nodes}",
            "ntasks-per-node=4",
            "gres=gpu:4",
            "time=24:00:00",
            "partition=gpu",
        ):
            assert f"#SBATCH --{option}" in asked


@pytest.mark.parametrize("row", TABLE, ids=IDS)
def test_small_is_for_a_cpu(study: Study, row: Row) -> None:
    done = study.run(row.script, APPROACH=row.approach, SMALL="1")
    assert done.returncode == 0, done.stderr
    experiments = study.experiments()
    assert tuple(each.name for each in experiments) == row.names
    for experiment in experiments:
        resources, model = experiment.resources, experiment.model
        assert (resources.nodes, resources.tasks_per_node, resources.gres) == (1, 2, None)
        assert (experiment.train.precision, experiment.data.dataset_limits) == ("fp32", (2000,))
        assert getattr(model, "hidden_dim", 64) == 64
        layers = [getattr(model, name) for name in dir(model) if name.startswith("num_") and "layers" in name]
        assert layers
        assert max(layers) <= 2


def test_without_slurm_the_runs_train_here(study: Study) -> None:
    (study.home / "scontrol").write_text("#!/bin/sh\nexit 1\n")
    study.run("sec_nmt", APPROACH="transformer")
    assert [words[0] for words, _ in study.calls()] == ["run"]


def test_what_the_caller_has_set_wins(study: Study) -> None:
    study.run("sec_nmt", "train.epochs=7", APPROACH="transformer", STK_NODES="1", STK_NUM_DECODER_LAYERS="3")
    (experiment,) = study.experiments()
    assert (experiment.resources.nodes, experiment.model.num_decoder_layers) == (1, 3)
    assert (experiment.train.epochs, experiment.model.num_encoder_layers) == (7, 6)


@pytest.mark.parametrize("script", sorted({row.script for row in TABLE} | {"finetune"}))
@pytest.mark.parametrize(
    "given", [{}, {"APPROACH": "cnn"}, {"APPROACH": "gnn transformer"}, {"APPROACH": ""}]
)
def test_what_is_no_approach_is_refused_with_those_that_are(
    study: Study, script: str, approach: str | None
) -> None:
    done = study.run(script, **({} if approach is None else {"APPROACH": approach}))
    assert (done.returncode, study.calls()) == (2, [])
    assert done.stderr.startswith("error: APPROACH is ")
    for row in TABLE:
        assert row.script != script or row.approach in done.stderr.partition("choose one of ")[2].split()


def test_small_is_yes_or_no(study: Study) -> None:
    done = study.run("sec_nmt", APPROACH="transformer", SMALL="perhaps")
    assert (done.returncode, study.calls()) == (2, [])
    assert "SMALL is 'perhaps': use 1, true" in done.stderr
    study.run("sec_nmt", APPROACH="transformer", SMALL="0")
    assert study.experiments()[0].resources.gres == "gpu:4"


@pytest.mark.parametrize(
    "script, variable",
    [("tokenization_repair_plus", "STK_REPAIR_RUN"), ("finetune", "STK_START_FROM_CHECKPOINT")],
)
def test_what_a_script_starts_from_must_be_given(study: Study, script: str, variable: str) -> None:
    approach = {"tokenization_repair_plus": "plus_sed", "finetune": "sed_words"}[script]
    done = study.run(script, APPROACH=approach, **{variable: ""})
    assert (done.returncode, study.calls()) == (2, [])
    assert f"set {variable} to the folder" in done.stderr
