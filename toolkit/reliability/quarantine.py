"""Quarantine: samples that fail at the same step twice are left out from then on.

quarantine.json: {"samples": [{"id", "step", "reason"}]}. A sample's id is its index in the training split;
step counts as in receipts.jsonl: the sample is left out in this step and all later ones. So the samples of a
step stay a pure function of the run folder, regardless of where a run is stopped and resumed.

A failure writes the samples of its micro-batch into events.jsonl. When the next attempt comes to that step,
each of these samples is tried alone before the step is done; one that fails again has failed twice.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from toolkit.data.provenance import origins
from toolkit.distributed.process_group import Group
from toolkit.errors import UserError
from toolkit.files import read_json, write_json
from toolkit.run.events import failure_events, note_event
from toolkit.run.failure.classes import OF_A_SAMPLE, class_of
from toolkit.run.run_dir import RunDir

#: Other samples that are tried for comparison: if they fail as well, the model is the cause.
_CONTROLS = 3

#: Computes the loss of some samples and its gradient without changing any state; returns the loss.
Try = Callable[[np.ndarray], float]

log = logging.getLogger("toolkit")


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """A sample in quarantine: its first step there (counted from 1), and the reason."""

    id: int
    step: int
    reason: str


@dataclass(slots=True, kw_only=True)
class Quarantine:
    """The samples that are left out, and suspects that are still to be tried.

    limit      largest number of samples that may be left out; 0 switches the quarantine off
    left_out   the samples in quarantine
    suspects   by step (counted from 0): samples of the micro-batches that failed there
    """

    limit: int = 0
    left_out: list[LeftOut] = field(default_factory=list)
    suspects: Mapping[int, frozenset[int]] = field(default_factory=dict)

    @classmethod
    def of(cls, run: RunDir, limit: int) -> Quarantine:
        """The quarantine of a run, from its folder."""
        if limit == 0:
            return cls()
        suspects: dict[int, frozenset[int]] = {}
        for failure in failure_events(run):
            if failure.kind in OF_A_SAMPLE and failure.step is not None and failure.samples:
                suspects[failure.step] = suspects.get(failure.step, frozenset()) | {*failure.samples}
        return cls(limit=limit, left_out=read_quarantine(run), suspects=suspects)

    def shared(self, group: Group) -> Quarantine:
        """Return rank 0's quarantine on every rank. Collective."""
        own = [(step, sorted(samples)) for step, samples in self.suspects.items()]
        left_out, suspects = group.agree(([asdict(each) for each in self.left_out], own))
        return replace(
            self,
            left_out=[LeftOut(**each) for each in left_out],
            suspects={step: frozenset(samples) for step, samples in suspects},
        )

    def without(self, indices: np.ndarray, step: int) -> np.ndarray:
        """Drop the samples that are left out in a step (counted from 0), and keep the order."""
        if not self.left_out:
            return indices
        return indices[~np.isin(indices, self.ids_at(step))]

    def ids_at(self, step: int) -> list[int]:
        """The samples that are left out in a step (counted from 0)."""
        return [each.id for each in self.left_out if each.step <= step + 1]

    def examine(
        self, run: RunDir, group: Group, samples: object, step: int, order: np.ndarray, attempt: Try
    ) -> None:
        """Try each suspect of a step (counted from 0) alone; those that fail are left out. Collective.

        samples   the training split, to name the source of a sample
        order     samples of the epoch; the first that are not suspects are tried for comparison
        """
        suspects = np.array(sorted(self.suspects[step] - {each.id for each in self.left_out}), dtype=np.int64)
        others = order[: _CONTROLS + len(self.suspects[step]) + len(self.left_out)]
        controls = self.without(others[~np.isin(others, list(self.suspects[step]))], step)[:_CONTROLS]
        failed = _try_alone(np.concatenate([suspects, controls]), group, attempt)
        if len(controls) and all(int(index) in failed for index in controls):
            log.warning("step %d fails with any sample, so none is put into quarantine", step + 1)
            return
        found = [LeftOut(id=id, step=step + 1, reason=failed[id]) for id in suspects.tolist() if id in failed]
        if group.world.is_main:
            self._log(run, samples, found)
        self.left_out += found[: self._room]
        if group.world.is_main and found:
            _write(run, self.left_out)

    @property
    def _room(self) -> int:
        return max(0, self.limit - len(self.left_out))

    def _log(self, run: RunDir, samples: object, found: list[LeftOut]) -> None:
        for place, each in enumerate(found):
            (origin,) = origins(samples, np.array([each.id]))
            if place >= self._room:
                log.error(
                    "failed twice at step %d (%s), but train.quarantine allows no more than %d samples: %s",
                    *(each.step, each.reason, self.limit, origin),
                )
                continue
            log.warning("left out from step %d on (%s): %s", each.step, each.reason, origin)
            note_event(run, "quarantined", **asdict(each), source=str(origin))


def read_quarantine(run: RunDir) -> list[LeftOut]:
    """The samples in quarantine, from the run's folder. Raises UserError for a malformed file."""
    try:
        stored: Any = read_json(run.quarantine) or {"samples": []}
        return [
            LeftOut(id=int(each["id"]), step=int(each["step"]), reason=str(each.get("reason", "")))
            for each in stored["samples"]
        ]
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise UserError(
            f"{run.quarantine} cannot be understood ({type(error).__name__}: {error}); "
            'expected {"samples": [{"id": 12, "step": 1, "reason": "why"}]}'
        ) from error


def _write(run: RunDir, left_out: Iterable[LeftOut]) -> None:
    try:
        write_json(run.quarantine, {"samples": [asdict(each) for each in left_out]})
    except OSError as error:
        # The samples will be found again after the next failure.
        log.warning("cannot write %s: %s", run.quarantine, error)


def _try_alone(samples: np.ndarray, group: Group, attempt: Try) -> dict[int, str]:
    """The samples that fail alone, with the reasons; the ranks share the work. Collective."""
    own = samples[group.world.rank :: group.world.size]
    reasons = {int(index): _why_it_fails(index[None], attempt) for index in own}
    found: dict[int, str] = {}
    for part in group.gather([(index, reason) for index, reason in reasons.items() if reason]):
        found.update(part)
    return found


def _why_it_fails(sample: np.ndarray, attempt: Try) -> str:
    try:
        loss = attempt(sample)
    except Exception as error:
        if class_of(error) not in OF_A_SAMPLE:
            raise
        return f"{type(error).__name__}: {error}".partition("\n")[0]
    return "" if math.isfinite(loss) else f"the loss is {loss}"
