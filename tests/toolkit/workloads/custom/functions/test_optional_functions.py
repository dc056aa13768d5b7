"""Optional functions of a file: optimizer, schedule, prepare, predict and report."""

from __future__ import annotations

import json
import os
import sys
import threading
from pathlib import Path

import pytest
import torch
from filelock import FileLock

from tests.toolkit.support.tiny_training import Attempt, Lab
from tests.toolkit.workloads.custom.own_digits import DIGITS, faults
from toolkit.config import load
from toolkit.distributed.process_group import Group
from toolkit.errors import UserError
from toolkit.files import read_json_lines
from toolkit.report.run.document import run_document
from toolkit.report.run.summary import summarize
from toolkit.run.events import read_events
from toolkit.system.world import World
from toolkit.testing.contract import open_task, same_results
from toolkit.training.assembly.optimizers import build_optimizer
from toolkit.training.evaluation import evaluate
from toolkit.workloads.custom.functions import task
from toolkit.workloads.custom.functions.task import FunctionsTask

OPTIMIZER = """

def optimizer(model, lr: float = 0.05, rho: float = 0.5, nesterov: bool = False):
    heads = [p for name, p in model.named_parameters() if name.startswith("3")]
    rest = [p for name, p in model.named_parameters() if not name.startswith("3")]
    groups = [{"params": rest}, {"params": heads, "lr": lr * 2}]
    return torch.optim.SGD(groups, lr=lr, momentum=rho, nesterov=nesterov)
"""
SCHEDULE = """

def schedule(step, total):
    return 1 - step / total
"""
PREPARE = """

def prepare(few: bool = False, copies: int = 2):
    with open("prepared.txt", "a") as stream:
        stream.write(f"{few} {copies}\\n")
"""
WAITING_PREPARE = """

def prepare():
    with open("log.txt", "a") as stream:
        print("begin", end=" ", file=stream, flush=True)
        if stream.tell() == len("begin "):
            open("pipe").read()
        print("end", end=" ", file=stream)
"""
AUGMENTED = """

class Augmented(list):
    draw = np.random.default_rng(0).random

    def __getitem__(self, index):
        x, y = super().__getitem__(index)
        return x + self.draw(), y


def data(split: str, few: bool = False):
    return Augmented(original(split, few)) if split == "train" else original(split, few)
"""
REPORT = """

def predict(model, batch):
    return model(batch[0]).argmax(1)


def report(run, outputs):
    rows = [{"split": split, "samples": len(said), "first": said[0]} for split, said in found(outputs)]
    return {"What it says": rows, "Remark": "all of it"}


def found(outputs):
    return outputs.items()
"""


def write(config: Path, *parts: str, yaml: str = "") -> None:
    (config.parent / "digits.py").write_text(DIGITS + "".join(parts))
    config.write_text(config.read_text() + yaml)


def test_parameters_of_the_optimizer_are_keys_of_its_section(config: Path) -> None:
    write(config, OPTIMIZER, yaml="optimizer: {rho: 0.9}\n")
    found = load(config, ["optimizer.lr=0.1"]).optimizer
    assert (found.kind, found.lr, found.arguments) == ("own", 0.1, {"rho": 0.9, "nesterov": False})
    assert load(config, []).optimizer.lr == 0.05


@pytest.mark.parametrize(
    "override, said",
    [
        ("optimizer.rhoo=0.1", "takes no rhoo (it takes lr, rho, nesterov)"),
        ("optimizer.weight_decay=0.1", "takes no weight_decay"),
        ("optimizer.rho=much", "expected float"),
        ("optimizer.kind=sgd", "replaces it"),
    ],
)
def test_invalid_keys_and_values_of_optimizer_are_refused(config: Path, override: str, said: str) -> None:
    write(config, OPTIMIZER)
    (fault,) = faults(config, override)
    assert override.partition("=")[0] in fault
    assert said in fault


def test_a_misspelt_kind_of_task_does_not_make_arguments_of_the_optimizer_unknown(config: Path) -> None:
    write(config, OPTIMIZER, yaml="optimizer: {rho: 0.9}\n")
    (fault,) = faults(config, "task={kind: own, module: digits.py}")
    assert "task.kind" in fault


def test_an_argument_of_the_optimizer_without_a_default_must_be_given(config: Path) -> None:
    write(
        config, OPTIMIZER.replace("rho: float = 0.5", "rho: float").replace("lr: float = 0.05", "lr: float")
    )
    (fault,) = faults(config)
    assert "optimizer.rho: is missing" in fault
    assert load(config, ["optimizer.rho=0.5"]).optimizer.arguments["rho"] == 0.5


def test_schedule_function_allows_no_keys_of_lr_scheduler(config: Path) -> None:
    write(config, SCHEDULE)
    assert load(config).lr_scheduler.kind == "own"
    assert "gives the learning rate" in faults(config, "lr_scheduler.warmup=0.1")[0]


@pytest.mark.parametrize("section, function", [("optimizer", "optimizer"), ("lr_scheduler", "schedule")])
def test_kind_own_is_refused_without_its_function(config: Path, section: str, function: str) -> None:
    (fault,) = faults(config, f"{section}.kind=own")
    assert f"no function {function}" in fault


def test_custom_optimizer_follows_the_schedule_and_resumes_exactly(config: Path, tmp_path: Path) -> None:
    write(config, OPTIMIZER, SCHEDULE)
    experiment = load(config, ["train.epochs=1"])
    lab = Lab(tmp_path / "lab")
    whole = lab.train(experiment, Attempt())
    rates = [line["lr"] for line in read_json_lines(whole.metrics) if line["split"] == "train"]
    steps = [line["step"] for line in read_json_lines(whole.metrics) if line["split"] == "train"]
    assert rates == [pytest.approx(0.05 * (1 - (step - 1) / steps[-1])) for step in steps]
    stopped = lab.train(experiment, Attempt(stop_after=5), Attempt())
    same_results(stopped, whole)


@pytest.mark.parametrize(
    "body, said",
    [
        ("return None", "optimizer returned NoneType"),
        (
            "return torch.optim.SGD(torch.nn.Linear(2, 2).parameters())",
            "2 parameters that the given model lacks",
        ),
        ("return torch.optim.LBFGS(model.parameters())", "LBFGS"),
    ],
)
def test_invalid_optimizer_is_refused_with_its_line(config: Path, body: str, said: str) -> None:
    write(config, f"\n\ndef optimizer(model):\n    {body}\n")
    experiment = load(config)
    task = open_task(experiment)
    with pytest.raises(UserError, match=r"digits\.py:31: ") as caught:
        build_optimizer(task.model(), experiment.optimizer, task)
    assert said in str(caught.value)


@pytest.mark.parametrize("said", ["None", "-0.5", "float('nan')", "'half'"])
def test_invalid_factor_of_the_schedule_is_refused_with_its_line(config: Path, said: str) -> None:
    write(config, f"\n\ndef schedule(step, total):\n    return {said}\n")
    with pytest.raises(UserError, match=r"digits\.py:31: schedule returned"):
        open_task(load(config)).schedule(0, 10)  # type: ignore[attr-defined]


def test_prepare_gets_the_keys_of_the_data_section(config: Path) -> None:
    write(config, PREPARE)
    experiment = load(config, ["data.copies=3"])
    assert experiment.model.needs_preparation
    task_class = type(open_task(experiment))
    task_class.prepare(experiment)
    assert Path("prepared.txt").read_text().splitlines()[-1] == "True 3"


def test_runs_wait_while_another_one_prepares_the_same_data(config: Path) -> None:
    (config.parent / "digits.py").write_text(DIGITS + WAITING_PREPARE)
    experiment = load(config)
    os.mkfifo("pipe")
    other = threading.Thread(target=FunctionsTask.prepare, args=[experiment])
    other.start()
    # Opened as soon as the other one reads from it.
    with open("pipe", "wb", buffering=0) as pipe:
        FunctionsTask.prepare(experiment, lambda what, *_: pipe.close())
    other.join()
    assert Path("log.txt").read_text() == "begin end begin end "


def test_prepare_is_called_at_last_though_another_run_keeps_its_lock(
    config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That run may be suspended, or its host lost."""
    write(config, PREPARE)
    experiment = load(config)
    FunctionsTask.prepare(experiment)
    (path,) = Path().glob(".prepare-*.lock")
    monkeypatch.setattr(task, "_PREPARE_S", 0.0)
    with FileLock(path):
        FunctionsTask.prepare(experiment)
    assert len(Path("prepared.txt").read_text().splitlines()) == 2


def test_data_and_prepare_must_agree_on_the_default_of_a_key(config: Path) -> None:
    write(config, PREPARE.replace("few: bool = False", "few: bool = True"))
    (fault,) = faults(config)
    assert "prepare has few with another type or default" in fault


def test_predict_is_called_only_for_outputs_and_once_as_a_trial(config: Path) -> None:
    """Validations during training need no predictions, and predict may generate long texts."""
    code = "\n\ncalls = []\n\n\ndef predict(model, batch):\n    calls.append(1)\n    return batch[1]\n"
    write(config, code)
    experiment = load(config)
    task = open_task(experiment)
    calls = sys.modules["digits"].calls
    group = Group(World.single(), torch.device("cpu"))
    for with_outputs, expected in ((False, 1), (False, 1), (True, 2)):
        evaluate(
            task, task.model(), "validation", group, experiment.evaluation, None, with_outputs=with_outputs
        )
        assert len(calls) == expected


def test_report_function_adds_sections_to_the_report(config: Path, tmp_path: Path) -> None:
    write(config, REPORT)
    run = Lab(tmp_path / "lab").train(load(config, ["train.epochs=1"]), Attempt())
    titles = [section.title for section in run_document(summarize(run)).sections]
    assert {"What it says", "Remark"} <= set(titles)
    stored = json.loads((run.artifacts / "report_sections.json").read_text())
    assert [row[:2] for row in stored[0]["rows"]] == [["validation", "120"], ["test", "120"]]


def test_run_finishes_and_tells_the_failure_of_its_report_function(config: Path, tmp_path: Path) -> None:
    report = "(run.artifacts / 'mine.txt').touch()\n    return outputs['train']"
    write(config, f"\n\ndef report(run, outputs):\n    {report}\n")
    run = Lab(tmp_path / "lab").train(load(config, ["train.epochs=1"]), Attempt())
    assert run.result.is_file()
    (event,) = read_events(run, "report_failed")
    (log,) = run.logs.iterdir()
    shown = next(each for each in run_document(summarize(run)).sections if each.title == "report failed")
    for text in (str(event), log.read_text(), str(shown)):
        assert "digits.py:33: KeyError" in text
    assert (run.artifacts / "mine.txt").exists()


def test_run_warns_of_samples_that_differ_after_the_same_seed(config: Path, tmp_path: Path) -> None:
    plain = DIGITS.replace("def data(", "def original(")
    (config.parent / "digits.py").write_text(plain + AUGMENTED)
    run = Lab(tmp_path / "lab").train(load(config, ["train.epochs=1"]), Attempt())
    (event,) = read_events(run, "data_warning")
    assert 'digits.py:39: sample 0 of data("train") differs' in str(event)
