"""stk correct"""

from __future__ import annotations

from argparse import Namespace

from slurm.using import become, found_run, job
from toolkit.config import load_resolved
from toolkit.errors import UserError
from toolkit.spelling_use.abilities import CORRECTORS
from toolkit.spelling_use.requests import Request


def run(arguments: Namespace) -> int:
    """Correct lines with a trained model."""
    target = found_run(arguments, CORRECTORS, "corrects no texts")
    if arguments.beam_width is not None and arguments.beam_width < 1:
        raise UserError(f"--beam-width is {arguments.beam_width}: it must be at least 1")
    if arguments.detections == "-" and arguments.file is None:
        raise UserError("--detections - reads standard input: give the lines in a FILE")
    given = {"search": arguments.search, "beam_width": arguments.beam_width}
    options = {name: value for name, value in given.items() if value is not None}
    if options and not hasattr(load_resolved(target.config).task, "search"):
        raise UserError(f"{target.run_id} repairs white space, for which nothing is searched: no --search")
    become(
        target,
        Request(
            jobs=(job(arguments, "text", detections=arguments.detections, detected=arguments.detected),),
            device=arguments.device,
            batch_tokens=arguments.batch_tokens,
            options=options,
            progress=arguments.progress,
        ),
    )
