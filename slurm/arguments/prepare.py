"""The arguments of `stk prepare`."""

from __future__ import annotations

from slurm.arguments.common import Parsers, cluster, command, experiment, json_option, positive


def add(parsers: Parsers) -> None:
    """Add the command."""
    parser = command(
        parsers,
        "prepare",
        "only the data preparation",
        "Build the prepared data of an experiment, unless they are there; say what they hold and which rows\n"
        "were left out. Training does this by itself when it begins.\n\n"
        "  stk prepare CONFIG                                 here and now\n"
        "  stk prepare CONFIG --cluster slurm --cpus 16       as a job of one task, without GPUs\n\n"
        "The job asks for the partition, account, time and memory of the experiment's resources. Texts with\n"
        "errors go on where an interrupted preparation was; tables and mentions begin anew.",
    )
    experiment(parser)
    cluster(parser, "local", "local (default): here and now; slurm: as a job; auto: as a job where possible")
    parser.add_argument(
        "--cpus",
        type=positive,
        metavar="N",
        help="CPUs of the job (default: resources.cpus_per_task)",
    )
    json_option(parser)
