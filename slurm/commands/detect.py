"""stk detect"""

from __future__ import annotations

from argparse import Namespace

from slurm.using import become, found_run, job
from toolkit.errors import UserError
from toolkit.spelling_use.abilities import DETECTORS
from toolkit.spelling_use.requests import Request


def run(arguments: Namespace) -> int:
    """Find errors in lines with a trained model."""
    target = found_run(arguments, DETECTORS, "detects no errors")
    if arguments.threshold is not None and not 0 <= arguments.threshold <= 1:
        raise UserError(f"--threshold is {arguments.threshold:g}: it is a probability, from 0 to 1")
    become(
        target,
        Request(
            jobs=(job(arguments, arguments.form or "labels"),),
            device=arguments.device,
            batch_tokens=arguments.batch_tokens,
            threshold=arguments.threshold,
            progress=arguments.progress,
        ),
    )
