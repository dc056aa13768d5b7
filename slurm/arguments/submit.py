"""The arguments of `stk submit`."""

from __future__ import annotations

from slurm.arguments.common import Parsers, cluster, command, experiment, json_option

_DESCRIPTION = """\
Plan, then a job. The same experiment again joins its run: refused while it is live, told so when
it has finished, continued from its latest checkpoint otherwise.

  stk submit pretrain.yaml --then finetune.yaml train.epochs=3 --evaluate test.csv

One run after the other: the next begins when the one before it has finished, however often that is
interrupted, and never if it fails. A file behind --then may name the run before it:
  train.start_from_checkpoint: ${oc.env:STK_EARLIER_RUN}
"""


def add(parsers: Parsers) -> None:
    """Add the command."""
    parser = command(
        parsers, "submit", "hand an experiment to Slurm, or to processes on this machine", _DESCRIPTION
    )
    experiment(parser)
    parser.add_argument(
        "--then",
        nargs="+",
        action="append",
        default=[],
        metavar=("CONFIG", "key=value"),
        help="the experiment that follows, and keys to be set in it; may be given several times",
    )
    parser.add_argument(
        "--evaluate",
        nargs="?",
        const="",
        metavar="FILE",
        help="score the last run when it has finished, as a job of one task: stk evaluate on FILE, "
        "on a folder of benchmarks, or on its own test set",
    )
    cluster(parser)
    parser.add_argument("--fresh", action="store_true", help="put the runs' folders aside and start anew")
    json_option(parser)
