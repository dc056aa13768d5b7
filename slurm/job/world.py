"""The world of a task of a step, which tells the other tasks if it has none."""

from __future__ import annotations

from collections.abc import Mapping

from slurm.client.topology import step_nonce, world_from_step
from toolkit.errors import SchedulerError
from toolkit.run.refusal import tell_refusal
from toolkit.run.run_dir import RunDir
from toolkit.world import World


def world_of_task(run: RunDir, environ: Mapping[str, str]) -> World:
    """As `world_from_step`. Raises SchedulerError; the other tasks read why, and do not wait for this one."""
    try:
        return world_from_step(environ)
    except SchedulerError as error:
        tell_refusal(run, step_nonce(environ), str(error))
        raise
