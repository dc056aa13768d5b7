"""The arguments of the commands that take an experiment file, or continue its run."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import fields
from functools import partial
from types import UnionType
from typing import Any, get_args, get_type_hints

from slurm.commands.common import (
    CONFIG_HELP,
    RUN_HELP,
    Parsers,
    cluster,
    command,
    experiment,
    new_code_option,
    positive,
)
from slurm.config.resources import Resources
from toolkit.command import add_json

_PLAN = """\
Compose and check an experiment; print it resolved, with the batch script that submit would give to Slurm.
Changes nothing.
"""
_CHECK = """\
Try an experiment on this machine before its job waits in a queue: whether its data can be read, its loss is
finite and adds up over samples, the model can fit a few samples, two processes train to the same weights
as one, and a stop changes nothing; then measure time and memory of a step. It trains for a few steps, on
the CPU, and keeps nothing. Exit status 1 if a check fails.
"""
_SUBMIT = """\
Plan, then start a job. The same experiment again joins its run: it is refused while the run is live,
reported if the run has finished, and otherwise continued from its latest checkpoint.

  stk submit pretrain.yaml --then finetune.yaml train.epochs=3 --evaluate test.csv

One run after the other: the next starts when the one before it has finished, even after
interruptions, and never if that one fails. A file after --then may name the run before it:
  train.start_from_checkpoint: ${oc.env:STK_EARLIER_RUN}
"""
_SWEEP = """\
Many runs of one experiment, as one job array, or as few arrays as the cluster allows:

  stk sweep CONFIG seed=1,2,3 optimizer.lr=0.1,0.01     every combination: six runs
  stk sweep CONFIG optimizer.no_decay=[],[bias] --dry-run
                                                        two runs, only shown: a comma in brackets or quotes
                                                        does not separate values
  stk sweep CONFIG train.epochs=1,2 train.batch_size=8,16 --zip train.epochs,train.batch_size
                                                        two: the first values together, then the second
  stk sweep CONFIG optimizer.lr='loguniform(1e-5,1e-2)' model.hidden='randint(10,100)' --random 20
                                                        20 draws; also uniform(a,b), choice(a,b)
  stk sweep CONFIG optimizer.lr='loguniform(1e-5,1e-2)' --sampler tpe --samples 8
                                                        8 more each time, proposed by Optuna
  stk sweep CONFIG                                      what the section `sweep:` of the file lists

Each run equals that of `stk submit` with the same values. Runs that have finished or are live are
left out. All are checked first, and nothing is submitted if one has an error. The same command after a
change of the file shows the difference, and applies it. All runs have the same resources. Without Slurm
the runs are trained here, one after the other. A sweep has a name, by default that of the experiment:

  stk sweep status NAME       show the states of its runs
  stk sweep cancel NAME       cancel its pending and running runs
  stk sweep resume NAME       submit runs that ended unfinished, and runs that are not submitted yet
  stk sweep report NAME       the best run, a table, plots; below sweeps/NAME/report

Give an experiment file with one of these names as ./status.
"""
_RUN = """\
Train in the foreground, in processes on this machine: a laptop, or the shell of an interactive srun or
salloc. As a task of `srun -n 4 stk run …`, or under torchrun, this is one of the ranks.
Ctrl-C saves and exits; a second Ctrl-C exits at once.
"""
_PREPARE = """\
Build the prepared data of an experiment, unless they exist; print a summary with the rows that were left
out. Otherwise training does this when it starts.

  stk prepare CONFIG                                 here and now
  stk prepare CONFIG --cluster slurm --cpus 16       as a job of one task

The job requests the partition, account, time and memory of the experiment's resources. An interrupted
preparation begins again, or continues if its task supports that.
"""


def plan(parsers: Parsers) -> None:
    parser = command(parsers, "plan", "show the resolved experiment and the exact batch script", _PLAN)
    experiment(parser)
    parser.add_argument(
        "--test-only",
        action="store_true",
        help="also ask Slurm whether it would accept the job, and when it would start",
    )
    add_json(parser)
    _add_resource_options(parser)


def check(parsers: Parsers) -> None:
    parser = command(parsers, "check", "try an experiment here for a minute", _CHECK)
    experiment(parser)
    add_json(parser)


def submit(parsers: Parsers) -> None:
    summary = "submit an experiment to Slurm, or to processes on this machine"
    parser = command(parsers, "submit", summary, _SUBMIT)
    experiment(parser)
    parser.add_argument(
        "--then",
        nargs="+",
        action="append",
        default=[],
        metavar=("CONFIG", "key=value"),
        help="the experiment that follows, and keys to set in it; may be given several times",
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
    parser.add_argument("--fresh", action="store_true", help="move the runs' folders to old/ and start anew")
    new_code_option(parser)
    add_json(parser)
    _add_resource_options(parser)


def sweep(parsers: Parsers) -> None:
    summary = "submit many runs of one experiment as job arrays: grid, random, list, zip"
    parser = command(parsers, "sweep", summary, _SWEEP)
    experiment(
        parser,
        config_help=f"{CONFIG_HELP}, or status, cancel, resume, report",
        metavar="key=a,b",
        help="set a key to each of these values; after status, cancel, …: the sweep's name",
    )
    parser.add_argument("--name", help="the sweep's name (default: that in the file, or the experiment's)")
    parser.add_argument("--random", type=positive, metavar="N", help="N runs with values drawn at random")
    parser.add_argument(
        "--sampler", metavar="tpe", help="values that Optuna proposes, given the runs that have finished"
    )
    parser.add_argument("--samples", type=positive, metavar="N", help="N more runs, proposed by --sampler")
    parser.add_argument("--seed", type=int, metavar="S", help="seed of the draws (default: 0)")
    parser.add_argument(
        "--zip", action="append", default=[], metavar="KEY,KEY", help="keys whose values go together"
    )
    parser.add_argument("--seeds", metavar="A,B", help="each run with each of these seeds")
    parser.add_argument(
        "--max-parallel",
        type=positive,
        metavar="N",
        help="runs at the same time, in all arrays together (default: that of the section sweep, else "
        "resources.max_parallel)",
    )
    parser.add_argument("--at-most", type=positive, metavar="N", help="start N runs now, the rest later")
    parser.add_argument("--metric", metavar="SPLIT.METRIC", help="the metric that the report ranks by")
    parser.add_argument("--goal", choices=("max", "min"), help="whether more or less of it is better")
    parser.add_argument("--cancel-removed", action="store_true", help="end live runs that were removed")
    new_code_option(parser)
    parser.add_argument("--dry-run", action="store_true", help="show the runs, and do nothing")
    cluster(parser)
    add_json(parser)
    _add_resource_options(parser)


def run(parsers: Parsers) -> None:
    parser = command(parsers, "run", "train here and now", _RUN)
    experiment(parser, config_help=f"{CONFIG_HELP}, or a run to continue")
    parser.add_argument(
        "--procs", type=int, metavar="N", help="processes (default: resources.tasks_per_node)"
    )
    parser.add_argument("--gpus", type=int, metavar="N", help="a process on each of the N least busy GPUs")
    parser.add_argument(
        "--world-size", type=int, metavar="N", help="fail unless the world has exactly N ranks"
    )
    parser.add_argument("--fresh", action="store_true", help="move the run's folder to old/ and start anew")
    new_code_option(parser)
    add_json(parser)
    group = parser.add_argument_group(
        "several machines by hand", "the same command on each of them, with another --node-rank"
    )
    group.add_argument("--node-rank", type=int, metavar="K", help="number of this machine, counted from 0")
    group.add_argument("--nnodes", type=int, metavar="N", help="number of machines")
    group.add_argument("--master-addr", metavar="HOST", help="name or address of machine 0")
    group.add_argument("--master-port", type=int, metavar="P", help="port on machine 0 (default 29500)")
    group.add_argument(
        "--gpus-per-node",
        metavar="A,B,…",
        help="processes of each machine, one per GPU, in the order of the machines; one number for all",
    )
    _add_resource_options(parser)


def resume(parsers: Parsers) -> None:
    description = (
        "Continue a run from its latest good checkpoint, with its own code and config.\n"
        "A run without a checkpoint takes edited code.\n"
        "For other resources, such as another number of processes, repeat `stk submit` with them."
    )
    parser = command(parsers, "resume", "continue a run that has ended", description)
    parser.add_argument("run", metavar="RUN", help=RUN_HELP)
    parser.add_argument(
        "--force",
        action="store_true",
        help="also from checkpoints of another experiment or of data that have changed since; "
        "damaged ones are never used",
    )
    new_code_option(parser)
    cluster(parser)
    add_json(parser)


def prepare(parsers: Parsers) -> None:
    parser = command(parsers, "prepare", "only the data preparation", _PREPARE)
    experiment(parser)
    cluster(parser, "local", "local (default): here and now; slurm: as a job; auto: as a job where possible")
    parser.add_argument(
        "--cpus", type=positive, metavar="N", help="CPUs of the job (default: resources.cpus_per_task)"
    )
    add_json(parser)


def _add_resource_options(parser: argparse.ArgumentParser) -> None:
    """Add an option for each key with one value, unless the command has an option of that name."""
    parser.set_defaults(resource_overrides=[])
    group = parser.add_argument_group(
        "resources", "each sets the key of its name; docs/experiment-file/resources.md explains the keys"
    )
    for key, types in _resource_keys():
        option = f"--{key.replace('_', '-')}"
        # ArgumentError: the command already has an option of that name.
        with suppress(argparse.ArgumentError):
            kind: dict[str, Any] = {"action": "append_const", "const": f"resources.{key}=true"}
            if types != {bool}:
                metavar = "VALUE" if str in types else "N"
                kind = {"action": "append", "type": partial(_override, key, int in types), "metavar": metavar}
            group.add_argument(option, dest="resource_overrides", help=f"resources.{key}", **kind)


def _resource_keys() -> Iterator[tuple[str, set[type]]]:
    """Yield the keys with a single value, and the types of the value."""
    hints = get_type_hints(Resources)
    for each in fields(Resources):
        hint = hints[each.name]
        types = set(get_args(hint)) if isinstance(hint, UnionType) else {hint}
        if types <= {int, str, bool, type(None)}:
            yield each.name, types - {type(None)}


def _override(key: str, is_number: bool, text: str) -> str:
    """Return `resources.KEY=VALUE`; a text is quoted, because a comma would make a list of a sweep."""
    is_plain = is_number and text.isascii() and text.isdecimal()
    return f"resources.{key}={text if is_plain else json.dumps(text, ensure_ascii=False)}"
