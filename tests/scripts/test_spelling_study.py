"""The spelling study's scripts submit what the reference's table says, and nothing where none is chosen."""

from __future__ import annotations

import json
import os
import subprocess
import sys
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
#: Stands for stk: notes how it was called, and what a config would read. What only shows runs is done.
STK = f"""\
#!{sys.executable}
import json, os, sys
words = sys.argv[1:]
if words[0] == "plan" or "--dry-run" in words:
    os.execv(sys.executable, [sys.executable, "-m", "slurm", *words])
seen = {{name: value for name, value in os.environ.items() if name.startswith("STK_")}}
with open(os.environ["CALLS"], "a") as calls:
    print(json.dumps([words, seen]), file=calls)
if words[0] == "prepare":
    print(json.dumps({{"job_id": "prepared"}}))
if words[0] == "status" and "--json" in words:
    runs = [os.path.basename(word) for word in words[2:]]
    print(json.dumps([{{"job_id": run.rpartition("-")[0], "state": "pending"}} for run in runs]))
"""
#: What scripts/prepare_spelling makes; it leaves alone what is there.
PREPARED = (
    "text/train.txt",
    "dictionaries/merged_train.txt",
    "misspellings/train_misspellings.json",
    *(f"tokenizers/{name}.json" for name in ("bpe_1000", "bpe_10000", "characters", "bytes")),
    "text/test.txt",
    *(
        f"{folder}/{task}/wiki_{noise}/{split}/{side}.txt"
        for folder in ("benchmarks", "benchmarks_small")
        for task in ("sed_words", "sed_sequence", "sec", "tokenization_repair")
        for noise in ("artificial", "realistic")
        for split in ("dev", "test")
        for side in ("corrupt", "correct")
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
        self._program("sbatch", '#!/bin/sh\nprintf \'%s\\n\' "$@" >"$CALLS.sbatch"; echo 99\n')
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
            [SCRIPTS / (script if "." in script else f"train_slurm_{script}.sh"), *arguments],
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
        started = [call for call in self.calls() if call[0][0] in ("submit", "sweep", "run")]
        return [each for words, seen in started for each in self._of(words[1], words[2:], seen)]

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
@pytest.mark.parametrize("approach", [None, "", "cnn", "gnn transformer"])
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


# ---- the whole study

#: Finetuned run -> the one whose weights it begins with.
SOURCES = {
    **{
        f"finetune_{task}{suffix}": f"{task}_{approach}_features_True"
        for task in ("sed_words", "sed_sequence")
        for approach, suffix in (("gnn", ""), ("transformer", "_transformer"))
    },
    "finetune_sec_nmt_transformer": "transformer_sec_nmt",
    "finetune_sec_words_nmt_transformer": "transformer_sec_words_nmt",
}


@pytest.fixture(scope="module")
def reproduced(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Study]:
    """After all was submitted; each job has the name of its run."""
    with pytest.MonkeyPatch.context() as patch:
        study = Study(tmp_path_factory.mktemp("study"), patch)
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
        if after is not None:
            assert place[after] < place[name]
        start = each.train.start_from_checkpoint or getattr(each.model, "repair_run", None)
        assert (start is None) == (after is None)
        assert start is None or Path(start).name.rpartition("-")[0] == after
        assert start is None or Path(start).parent == reproduced.home / "experiments"


def test_what_is_scored_in_the_end_waits_for_all_runs(reproduced: Study) -> None:
    names = {each.name for each in reproduced.experiments()}
    asked = (reproduced.home / "calls.sbatch").read_text().splitlines()
    (waits,) = (line.removeprefix("--dependency=afterok:") for line in asked if "--dependency" in line)
    assert set(waits.split(":")) == names
    assert not any(line.startswith("--gres") for line in asked)
    (wrapped,) = (line for line in asked if line.startswith("--wrap="))
    assert "stk evaluate" in wrapped
    assert {Path(word).name.rpartition("-")[0] for word in wrapped.split() if "-" in Path(word).name} >= names


def test_without_slurm_the_study_is_trained_and_scored_here(study: Study) -> None:
    (study.home / "scontrol").write_text("#!/bin/sh\nexit 1\n")
    done = study.run("reproduce_spelling.sh", SMALL="1", STK_REPAIR_RUN="")
    assert done.returncode == 0, done.stderr
    kinds = [words[0] for words, _ in study.calls()]
    assert (kinds.count("sweep"), kinds.count("run"), kinds[-1]) == (4, 12, "evaluate")
    assert {each.resources.dependency for each in study.experiments()} == {None}
