"""The checkpoint that an attempt resumes from: rank 0 finds it, and all ranks get its answer."""

from __future__ import annotations

import json
import logging
import sys
import time
from contextlib import suppress
from typing import Any

from toolkit.checkpoint.paths import clear_leftovers
from toolkit.errors import CheckpointError, UserError
from toolkit.files import create_once, read_json, write_json
from toolkit.run.run_dir import MANIFEST
from toolkit.workloads.custom.script.alone import hold_stand_in
from toolkit.workloads.custom.script.checkpoints import newest_good
from toolkit.workloads.custom.script.place import Place
from toolkit.workloads.custom.script.ranks import from_rank_0, group

log = logging.getLogger("toolkit")

_POLL_S = 0.1
#: Rank 0 verifies checksums in the meantime, which takes a second for two gigabytes.
_TIMEOUT_S = 1800.0
#: The calls of this process that began a training with RunCallback.
_begun: list[str] = []


class Newest:
    """Finds the newest checkpoint at each call of this process."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._calls = 0
        # Number of rank 0's process, among those of this attempt, whose answers this process gets.
        self._process = 0

    def step(self) -> int | None:
        """Return the step of the newest checkpoint that verifies; None without checkpoints. Collective.

        In a run, rank 0 answers through a file, so that ranks may call this before they have a process group.

        Raises CheckpointError if all are damaged or rank 0 does not answer; UserError without a group or run,
        or if another training uses the folder of a stand-in.
        """
        place = self._place
        self._calls += 1
        if place.size == 1:
            answer = _answer(place)
        elif place.is_in_run:
            answer = self._through_file()
        elif group() is None:
            raise UserError(
                "run.latest_checkpoint() was called on several ranks that were not started by `stk`: call "
                "torch.distributed.init_process_group() before, or start the script with `stk run`"
            )
        else:
            answer = from_rank_0(_answer(place) if place.is_main else None)
        if "refused" in answer:
            raise UserError(answer["refused"])
        if "error" in answer:
            raise CheckpointError(answer["error"])
        step: int | None = answer["step"]
        return step

    def _through_file(self) -> dict[str, Any]:
        place = self._place
        if place.is_main:
            answer = _answer(place)
            self._process = self._process or self._newest_process() + 1
            write_json(place.run.answer(place.start, self._process, self._calls), answer)
            return answer
        deadline = time.monotonic() + _TIMEOUT_S
        while (found := self._found()) is None:
            if time.monotonic() > deadline:
                raise CheckpointError(
                    f"rank {place.rank} has waited {_TIMEOUT_S:g} s for rank 0 in run.latest_checkpoint(): "
                    "every rank has to call it, in the same order"
                )
            time.sleep(_POLL_S)
        return dict(found)

    def _found(self) -> Any:
        """Return rank 0's answer to this call; None before it.

        After `train.py && test.py` or in a loop, the answers to this rank's earlier process are still there.
        """
        run, start = self._place.run, self._place.start
        if not self._process:
            answered = run.answered(start, self._place.rank)
            earlier = (read_json(answered) or {"process": 0})["process"]
            if (newest := self._newest_process(earlier)) > earlier:
                write_json(answered, {"process": newest})
                self._process = newest
        return read_json(run.answer(start, self._process, self._calls))

    def _newest_process(self, known: int = 0) -> int:
        """Return the number of rank 0's newest process that has answered; `known` if there is no newer."""
        while self._place.run.answer(self._place.start, known + 1, 1).exists():
            known += 1
        return known


def _answer(place: Place) -> dict[str, Any]:
    try:
        hold_stand_in(place)
        if place.take_checkpoints():
            clear_leftovers(place.run)
        if (step := newest_good(place.run)) is not None:
            _warn_of_other_size(place, step)
        return {"step": step}
    except UserError as error:
        return {"refused": str(error)}
    except CheckpointError as error:
        return {"error": str(error)}
    except OSError as error:
        return {"error": f"{place.run.checkpoints} cannot be read: {error.strerror or error}"}


def _warn_of_other_size(place: Place, step: int) -> None:
    before = (read_json(place.run.checkpoint(step) / MANIFEST) or {}).get("world_size")
    if before is not None and before != place.size:
        log.warning(
            "the checkpoint of step %d was saved with WORLD_SIZE %d, and now it is %d: unless the script "
            "allows for it, its batches have another size, and samples are repeated or left out",
            *(step, before, place.size),
        )


def begin_once(place: Place, what: str) -> None:
    """Record that a training with RunCallback begins. Raises UserError at the second one of an attempt.

    The same command line may begin it again, as in `until python train.py; do :; done`.

    what  the call, such as trainer.fit
    """
    if _begun or _has_another_begun(place):
        raise UserError(
            f"{what} begins a second training in one run, which would continue from the checkpoints of the "
            "first: give RunCallback to one of them, or make a run for each, as `stk sweep` does"
        )
    _begun.append(what)


def _has_another_begun(place: Place) -> bool:
    """Whether a training with another command line has begun in this attempt. Rank 0 of a run knows."""
    if not (place.is_in_run and place.is_main):
        return False
    path = place.run.training(place.start)
    # If the disk is full, the training may still go on.
    with suppress(OSError):
        return not create_once(path, json.dumps(sys.argv)) and read_json(path) != sys.argv
    return False
