"""The arguments of `stk sweep`, which makes many runs of one experiment file."""

from __future__ import annotations

from slurm.arguments.common import Parsers, cluster, command, json_option, positive

_SUMMARY = "submit many runs of one experiment as job arrays: grid, random, list, zip"
_DESCRIPTION = """\
Many runs of one experiment, as one job array, or as few as the cluster allows:

  stk sweep CONFIG seed=1,2,3 optimizer.lr=0.1,0.01     every combination: six runs
  stk sweep CONFIG model.kernels=[2],[2,3] --dry-run    two, and only shown: a comma in brackets or
                                                        quotes separates nothing
  stk sweep CONFIG train.epochs=1,2 train.batch_size=8,16 --zip train.epochs,train.batch_size
                                                        two: the first values together, then the second
  stk sweep CONFIG optimizer.lr='loguniform(1e-5,1e-2)' model.filters='randint(10,100)' --random 20
                                                        20 draws; also uniform(a,b), choice(a,b)
  stk sweep CONFIG optimizer.lr='loguniform(1e-5,1e-2)' --sampler tpe --samples 8
                                                        8 more each time, where Optuna proposes them
  stk sweep CONFIG                                      what the section `sweep:` of the file says

Each is the very run that `stk submit` would make of its values; those that have finished or are live
are left out. All are checked first, and nothing is submitted if one has a fault. The same command after
the file was changed shows the difference, and does it. The resources are the same for all. Without Slurm
the runs are trained here, one after the other. A sweep has a name, by default that of the experiment:

  stk sweep status NAME       where its runs stand
  stk sweep cancel NAME       end those that wait or run
  stk sweep resume NAME       hand in what has ended unfinished, and what Slurm did not take yet
  stk sweep report NAME       the best run, a table, plots; below sweeps/NAME/report

An experiment file that is called like one of these words is given as ./status.
"""


def add(parsers: Parsers) -> None:
    """Add the command."""
    parser = command(parsers, "sweep", _SUMMARY, _DESCRIPTION)
    parser.add_argument(
        "config", metavar="CONFIG", help="experiment file (YAML), or status, cancel, resume, report"
    )
    parser.add_argument(
        "overrides",
        nargs="*",
        metavar="key=a,b",
        help="set a key of the experiment to each of these values; after status … the sweep's name",
    )
    parser.add_argument("--name", help="the sweep's name (default: that in the file, or the experiment's)")
    parser.add_argument("--random", type=positive, metavar="N", help="N runs with values drawn at random")
    parser.add_argument(
        "--sampler", metavar="tpe", help="values that Optuna proposes, given the runs that have finished"
    )
    parser.add_argument("--samples", type=positive, metavar="N", help="so many more runs with --sampler")
    parser.add_argument("--seed", type=int, metavar="S", help="of the draws (default: 0)")
    parser.add_argument(
        "--zip", action="append", default=[], metavar="KEY,KEY", help="keys whose values go together"
    )
    parser.add_argument("--seeds", metavar="A,B", help="each run with each of these seeds")
    parser.add_argument(
        "--max-parallel",
        type=positive,
        metavar="N",
        help="runs at the same time, in all arrays together (default: resources.max_parallel)",
    )
    parser.add_argument("--at-most", type=positive, metavar="N", help="hand in N runs now, the rest later")
    parser.add_argument("--metric", metavar="SPLIT.METRIC", help="what the report ranks by")
    parser.add_argument("--goal", choices=("max", "min"), help="whether more or less of it is better")
    parser.add_argument("--cancel-removed", action="store_true", help="end live runs that are asked no more")
    parser.add_argument("--dry-run", action="store_true", help="show the runs, and do nothing")
    cluster(parser)
    json_option(parser)
