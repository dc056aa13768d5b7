"""The task of the training loop for three functions of the user."""

from __future__ import annotations

import hashlib
import json
import logging
import math
import os
from collections import UserDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch
from filelock import FileLock
from torch import nn

from toolkit.config.schema import Experiment, Optimizer
from toolkit.config.secrets import concealed
from toolkit.config.serialize import to_plain
from toolkit.data.prepared.build_once import held
from toolkit.data.ragged import Lists
from toolkit.errors import UserError
from toolkit.run.events import note_event
from toolkit.run.run_dir import RunDir, experiment_dir
from toolkit.task import Evaluation, Loss, Ragged, Score
from toolkit.training.numerics.rng import seed_everything
from toolkit.workload import Progress, silent
from toolkit.workloads.custom.functions.new_model import new_model, unchanged
from toolkit.workloads.custom.functions.own_report import write_sections
from toolkit.workloads.custom.functions.prediction.values import checked_predictions, values_of
from toolkit.workloads.custom.functions.samples import Split, digest_of, moved, split_of
from toolkit.workloads.custom.functions.sections.optimizer_schedule import SECTION_KEYS
from toolkit.workloads.custom.functions.step_sums import NO_GRADIENT, metric_names, summed
from toolkit.workloads.custom.functions.user_code import UserCode

_SPLITS = ("train", "validation", "test")
#: Seconds to wait for another run's call of `prepare`.
_PREPARE_S = 3600.0

log = logging.getLogger("toolkit")


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """The argument of `step`, with the number of its samples and the sum of their lengths."""

    content: Any
    samples: int
    tokens: int


class _Outputs(UserDict[str, Any]):
    """The outputs of a batch, computed when first read: a validation during training does not read them."""

    def __init__(self, compute: Callable[[], dict[str, Any]]) -> None:
        self._compute = torch.no_grad()(compute)

    @cached_property
    def data(self) -> dict[str, Any]:  # type: ignore[override]
        return self._compute()


class FunctionsTask:
    """A task of three functions. `toolkit.task.Task` describes the members."""

    def __init__(self, experiment: Experiment) -> None:
        self._experiment = experiment
        # Also the import of the user's module, and the constructor of the class, may draw random numbers.
        seed_everything(experiment.seed)
        self._code = UserCode(experiment.task)
        self._outputs: dict[str, Lists] = {}
        self._has_begun = self._has_predicted = self._predicts_lists = False
        self.prepared = None
        self.splits = dict(self._splits())
        self.warnings: list[str] = []
        self.fingerprint = self._fingerprint()
        counts = ", ".join(f"{len(split):,} {name}" for name, split in self.splits.items())
        self.summary = "; ".join([f"{counts} samples", *self.warnings])

    @classmethod
    def prepare(cls, experiment: Experiment, progress: Progress | None = None) -> str:
        """Import the functions in one process, to report errors once, and call `prepare`."""
        seed_everything(experiment.seed)
        code = UserCode(experiment.task)
        if code.functions.prepare is not None:
            values = experiment.data.values()
            shown = to_plain(values)
            taken = [(each.name, shown.get(each.name)) for each in code.functions.prepare]
            with _one_at_a_time(
                [experiment.task.module, experiment.task.class_name, taken], progress or silent
            ):
                code.call("prepare", values)
        return f"data() of {code.shown} makes the samples"

    def on(self, data: Any, progress: Progress | None = None) -> FunctionsTask:
        raise UserError(
            f"the samples of {self._code.shown} come from its function data: other files cannot be scored. "
            "If it has a function predict, `stk predict RUN FILE` predicts the rows of a file; a script of "
            "yours can score with the model of stk.load(folder)"
        )

    def _splits(self) -> Iterator[tuple[str, Split]]:
        # As in a process that has imported the module earlier.
        seed_everything(self._experiment.seed)
        lengths = self._code.find("lengths")
        for name in _SPLITS:
            # The same seed for each split, so that the parts of a random split do not overlap.
            seed_everything(self._experiment.seed)
            dataset = self._code.call("data", self._experiment.data.values(), name)
            what = f'{self._code.place("data")}: data("{name}")'
            if dataset is not None:
                yield name, split_of(dataset, lengths and lengths(name), what, self._code.place("lengths"))
            elif name != "test":
                raise UserError(f"{what} returned None, expected a map-style Dataset: only test may be None")

    def _fingerprint(self) -> str:
        version = self._code.find("version")
        facts = {
            # A renewed token does not make other data.
            "data": to_plain(self._experiment.data.values()),
            # A function or module named `version` is no version, and its text may differ between processes.
            "version": str(None if callable(version) or isinstance(version, ModuleType) else version),
            "splits": {name: self._digest(name, split) for name, split in self.splits.items()},
        }
        return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()

    def _digest(self, name: str, split: Split) -> str:
        """Return the checksum of a split; add a warning if its samples change with each read."""
        changing: list[int] = []
        digest = digest_of(split, changing.append)
        if changing:
            follows = (
                "a resumed run is not exact" if name == "train" else "its scores differ at each evaluation"
            )
            self.warnings.append(
                f'{self._code.place("data")}: sample {changing[0]} of data("{name}") differs when it is read '
                f"again after the same seed, so {follows}: draw from the global generator of torch, numpy or "
                "random, not from one of your own"
            )
        return digest

    def model(self) -> nn.Module:
        return new_model(self._code, self._experiment.model)

    def optimizer(self, model: nn.Module, config: Optimizer) -> torch.optim.Optimizer:
        """Return the optimizer of the user's function. Raises UserError if it does not fit the model."""
        names = [each.name for each in self._code.functions.optimizer or () if each.name in SECTION_KEYS]
        values = {**{name: getattr(config, name) for name in names}, **config.arguments}
        found = self._code.call("optimizer", values, model)
        _check_optimizer(found, model, self._code.place("optimizer"))
        return found  # type: ignore[no-any-return]

    def schedule(self, step: int, total: int) -> float:
        """Return the user's factor of the learning rate in a step, counted from 0.

        Raises UserError unless it is finite and at least 0.
        """
        found = self._code.find("schedule")(step, total)
        try:
            factor = float(found)
        except (TypeError, ValueError):
            factor = math.nan
        if not 0 <= factor < math.inf:
            problem = f"schedule returned {found!r}, expected a factor of the learning rate, such as 0.5"
            raise UserError(f"{self._code.place('schedule')}: {problem}")
        return factor

    def collate(self, split: str, indices: np.ndarray, device: torch.device) -> Batch:
        samples, own = self.splits[split], self._code.find("collate")
        content = own(samples.take(indices)) if own else samples.batch(indices, self._code.place("data"))
        tokens = int(samples.lengths[indices].sum())
        return Batch(content=moved(content, device), samples=len(indices), tokens=tokens)

    def move(self, batch: Batch, device: torch.device) -> Batch:
        """Return a batch that was made on the CPU, moved to a device."""
        return replace(batch, content=moved(batch.content, device))

    @cached_property
    def _metrics(self) -> tuple[str, ...]:
        """Names of the metrics that `step` returns: from its source, else from a call with two samples."""
        if self._code.functions.metrics is not None:
            return self._code.functions.metrics
        batch = self.collate("train", np.arange(min(2, len(self.splits["train"]))), torch.device("cpu"))
        with torch.no_grad():
            returned = self._code.find("step")(self.model().eval(), batch.content)
        return metric_names(returned, self._code.place("step"))

    @property
    def train_sums(self) -> tuple[str, ...]:
        return tuple(each for name in self._metrics for each in (name, f"{name} count"))

    @property
    def score_sums(self) -> tuple[str, ...]:
        return ("loss", "count", *self.train_sums)

    def _step(self, model: nn.Module, batch: Batch) -> Loss:
        returned = self._code.find("step")(model, batch.content)
        return summed(returned, batch.samples, batch.tokens, self._metrics, self._code.place("step"))

    def loss(self, model: nn.Module, batch: Batch) -> Loss:
        is_first = model.training and not self._has_begun
        with unchanged(model, self._code.place("model")) if is_first else nullcontext():
            loss = self._step(model, batch)
            if torch.is_grad_enabled() and not loss.total.requires_grad:
                raise UserError(f"{self._code.place('step')}: {NO_GRADIENT}")
        self._has_begun |= is_first
        return loss

    def score(self, model: nn.Module, batch: Batch) -> Score:
        with torch.no_grad():
            loss = self._step(model, batch)
        outputs: Mapping[str, Any] = {}
        if (predict := self._code.find("predict")) is not None:
            outputs = _Outputs(lambda: self._predicted(predict(model, batch.content), batch.samples))
            if not self._has_predicted:
                # Computed once, so that an error appears at the first validation and not after training.
                self._has_predicted = bool(outputs)
        total = loss.total.double()
        count = loss.count if isinstance(loss.count, torch.Tensor) else total.new_tensor(loss.count)
        sums = torch.cat([torch.stack([total, count]), loss.sums.to(total.device)])
        return Score(sums=sums, outputs=outputs)

    def _predicted(self, found: Any, samples: int) -> dict[str, Any]:
        predictions = checked_predictions(found, samples, self._code.place("predict"))
        self._predicts_lists = isinstance(predictions, Ragged)
        return {"predictions": predictions}

    def train_metrics(self, sums: Mapping[str, float], count: float) -> dict[str, float]:
        return {name: sums[name] / sums[f"{name} count"] for name in self._metrics if sums[f"{name} count"]}

    def metrics_need_outputs(self, split: str) -> bool:
        return False

    def metrics(self, split: str, evaluation: Evaluation) -> dict[str, float]:
        loss, count, *sums = evaluation.sums.tolist()
        return {
            # There is no mean if all weights are 0.
            "loss": loss / count if count else math.nan,
            **self.train_metrics(dict(zip(self.train_sums, sums, strict=True)), count),
        }

    def write_report(self, run: RunDir, split: str, evaluation: Evaluation) -> None:
        """Write the result of `predict` for each sample as a line of JSON."""
        if "predictions" not in evaluation.outputs:
            return
        run.artifacts.mkdir(exist_ok=True)
        found = evaluation.outputs["predictions"]
        if self._code.find("report"):
            self._outputs[split] = found
        lines = (json.dumps(each) + "\n" for each in self._values_of(found))
        (run.artifacts / f"{split}_predictions.jsonl").write_text("".join(lines), encoding="utf-8")

    def _values_of(self, found: Lists) -> Iterator[Any]:
        return values_of(found, are_lists=self._predicts_lists)

    def export(self, run: RunDir, model: nn.Module) -> None:
        """Write the result of the user's function `report`. If it fails, the run does not fail.

        The model is not exported: the best checkpoint has its weights under their own names.
        """
        report = self._code.find("report")
        if report is None:
            return
        try:
            outputs = {split: list(self._values_of(found)) for split, found in self._outputs.items()}
            run.artifacts.mkdir(exist_ok=True)
            write_sections(run, report(run, outputs))
        except Exception as error:
            reason = concealed(f"{self._code.place('report', error)}: {type(error).__name__}: {error}")
            note_event(run, "report_failed", reason=reason)
            log.warning("your function report failed: %s", reason)
            with suppress(OSError):
                write_sections(run, {"report failed": reason})


@contextmanager
def _one_at_a_time(call: object, progress: Progress) -> Iterator[None]:
    """Wait until no other run makes this call in the same working directory, and keep the others waiting.

    After an hour the call is made nevertheless: the other run may be suspended, or its host lost.
    """
    folder = Path.cwd() if os.access(".", os.W_OK) else experiment_dir()
    path = folder / f".prepare-{hashlib.sha256(repr(call).encode()).hexdigest()[:16]}.lock"
    waiting = partial(progress, "waiting for prepare() of another run", 0, None)
    with ExitStack() as stack:
        # Without a lock where a file system has none, or nothing may be written.
        with suppress(OSError, NotImplementedError):
            lock = FileLock(path, mode=0o664, fallback_to_soft=False)
            stack.enter_context(held(lock, path, _PREPARE_S, waiting))
        yield


def _check_optimizer(found: Any, model: nn.Module, place: str) -> None:
    """Raise UserError unless the function returned an optimizer over parameters of the model."""
    if not isinstance(found, torch.optim.Optimizer):
        kind = type(found).__name__
        raise UserError(f"{place}: optimizer returned {kind}, expected a torch.optim.Optimizer")
    if isinstance(found, torch.optim.LBFGS):
        raise UserError(f"{place}: LBFGS calls step several times per update: use another optimizer")
    known = set(model.parameters())
    foreign = sum(each not in known for group in found.param_groups for each in group["params"])
    if foreign:
        raise UserError(
            f"{place}: the optimizer has {foreign} parameters that the given model lacks: "
            "make it from model.parameters()"
        )
