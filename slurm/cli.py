"""The command `stk`: arguments in, exit code out. What it does stands in `slurm.commands`."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence
from typing import TypeAlias

from slurm.arguments import entities, evaluate, spelling, sweep, use
from toolkit.errors import StkError

_DESCRIPTION = """\
One experiment file, from a laptop to a SLURM cluster.

  stk plan configs/quickstart.yaml                  show what would be done, touch nothing
  stk run configs/quickstart.yaml                   train here and now
  stk submit configs/quickstart.yaml                hand it to Slurm, or to this machine
  stk status                                        where everything stands
"""

_CONFIG_HELP = "experiment file (YAML)"
_RUN_HELP = "a run: its folder, its id, or a unique beginning of that"
_EPILOG = """\
Any key of the experiment can be set: key.path=value, for example
  resources.nodes=2 resources.gres=gpu:2 train.epochs=3 model.kernels=[2,3,4]
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code: 0, 2 (input), 3 (Slurm), 4 (run failed), 130."""
    arguments = _parse(argv)
    try:
        # Late, so that a command pays for no other's imports.
        command = importlib.import_module(f"slurm.commands.{arguments.command}")
        code = int(command.run(arguments))
        # Here, where a reader that has gone is caught, and not when the interpreter ends.
        sys.stdout.flush()
        return code
    except StkError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The reader of a pipe, such as `head`, has seen enough.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """Parsed arguments; key=value and further runs may also stand after options, which argparse refuses."""
    parser = _parser()
    arguments, rest = parser.parse_known_args(argv)
    lists = [getattr(arguments, name) for name in ("overrides", "runs") if hasattr(arguments, name)]
    if rest and (not lists or any(word.startswith("-") for word in rest)):
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    for known in lists:
        known.extend(rest)
    return arguments


class _Version(argparse.Action):
    """Look the version up only when asked: the look-up costs as much as reading a config."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from importlib import metadata

        parser.exit(message=f"slurm-toolkit {metadata.version('slurm-toolkit')}\n")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="stk", description=_DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and exit")
    parsers = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    _add_plan(parsers)
    _add_submit(parsers)
    _add_sweep(parsers)
    _add_run(parsers)
    _add_resume(parsers)
    _add_status(parsers)
    _add_logs(parsers)
    _add_report(parsers)
    _add_evaluate(parsers)
    _add_cancel(parsers)
    _add_requeue(parsers)
    _add_watch(parsers)
    _add_prepare(parsers)
    _add_replay(parsers)
    _add_diff(parsers)
    _add_drill(parsers)
    _add_entities(parsers)
    _add_spelling(parsers)
    _add_use(parsers)
    return parser


#: argparse offers no public name for what add_subparsers gives.
_Parsers: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"


def _command(parsers: _Parsers, name: str, summary: str, description: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = parsers.add_parser(
        name,
        help=summary,
        description=description,
        epilog=_EPILOG if name in ("plan", "submit", "sweep", "run", "prepare") else None,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(command=name)
    return parser


def _experiment(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("config", metavar="CONFIG", help=_CONFIG_HELP)
    parser.add_argument("overrides", nargs="*", metavar="key=value", help="set a key of the experiment")


def _json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="one JSON document on standard output")


_AUTO_HELP = "auto (default): Slurm where a controller answers, else processes on this machine"


def _cluster(parser: argparse.ArgumentParser, default: str = "auto", help: str = _AUTO_HELP) -> None:
    parser.add_argument("--cluster", choices=("auto", "slurm", "local"), default=default, help=help)


def _add_plan(parsers: _Parsers) -> None:
    parser = _command(
        parsers,
        "plan",
        "show the resolved experiment and the exact batch script",
        "Compose and check an experiment; print it resolved, and the batch script that submit would hand\n"
        "to Slurm. Touches nothing.",
    )
    _experiment(parser)
    parser.add_argument(
        "--test-only",
        action="store_true",
        help="also ask Slurm whether it would accept the job, and when it would start",
    )
    _json(parser)


def _add_submit(parsers: _Parsers) -> None:
    parser = _command(
        parsers,
        "submit",
        "hand an experiment to Slurm, or to processes on this machine",
        "Plan, then a job. The same experiment again joins its run: refused while it is live, told so when\n"
        "it has finished, continued from its latest checkpoint otherwise.",
    )
    _experiment(parser)
    _cluster(parser)
    parser.add_argument("--fresh", action="store_true", help="put the run's folder aside and start anew")
    _json(parser)


def _add_sweep(parsers: _Parsers) -> None:
    parser = _command(parsers, "sweep", sweep.SUMMARY, sweep.DESCRIPTION)
    sweep.add_arguments(parser, _CONFIG_HELP)
    _cluster(parser)
    _json(parser)


def _add_run(parsers: _Parsers) -> None:
    parser = _command(
        parsers,
        "run",
        "train here and now",
        "Train in the foreground, in processes on this machine: a laptop, or the shell of an interactive\n"
        "srun or salloc. As a task of `srun -n 4 stk run …`, or under torchrun, this is one of the ranks.\n"
        "Ctrl-C saves and leaves; a second Ctrl-C leaves at once.",
    )
    parser.add_argument("config", metavar="CONFIG", help=_CONFIG_HELP + ", or a run to go on with")
    parser.add_argument("overrides", nargs="*", metavar="key=value", help="set a key of the experiment")
    parser.add_argument(
        "--procs", type=int, metavar="N", help="processes (default: resources.tasks_per_node)"
    )
    parser.add_argument("--gpus", type=int, metavar="N", help="a process on each of the N least busy GPUs")
    parser.add_argument(
        "--world-size", type=int, metavar="N", help="refuse to start if there are not so many ranks"
    )
    parser.add_argument("--fresh", action="store_true", help="put the run's folder aside and start anew")
    _json(parser)
    _machines(parser)


def _machines(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group(
        "several machines by hand", "the same command on each of them, but for its number"
    )
    group.add_argument("--node-rank", type=int, metavar="K", help="which machine this is, counted from 0")
    group.add_argument("--nnodes", type=int, metavar="N", help="how many machines there are")
    group.add_argument("--master-addr", metavar="HOST", help="name or address of machine 0")
    group.add_argument("--master-port", type=int, metavar="P", help="where they meet there (default 29500)")
    group.add_argument(
        "--gpus-per-node",
        metavar="A,B,…",
        help="processes of each machine, one per GPU, in their order; one number for all",
    )


def _add_resume(parsers: _Parsers) -> None:
    parser = _command(
        parsers,
        "resume",
        "put an ended run back to work",
        "Continue a run from its latest good checkpoint, with its own code and config.",
    )
    parser.add_argument("run", metavar="RUN", help=_RUN_HELP)
    parser.add_argument(
        "--force",
        action="store_true",
        help="also from checkpoints of another experiment or of data that have changed since; "
        "damaged ones are never used",
    )
    _cluster(parser)
    _json(parser)


def _add_status(parsers: _Parsers) -> None:
    parser = _command(
        parsers,
        "status",
        "where everything stands",
        "A table of runs: state, step, loss and metrics, restarts.\n"
        "Without RUN: all under STK_EXPERIMENT_DIR.",
    )
    parser.add_argument("runs", nargs="*", metavar="RUN", help=_RUN_HELP)
    _json(parser)


def _add_logs(parsers: _Parsers) -> None:
    parser = _command(
        parsers,
        "logs",
        "the log of a run",
        "The log of one rank of the newest start; after a failure, the first failing rank's error on top.",
    )
    parser.add_argument("run", metavar="RUN", help=_RUN_HELP)
    parser.add_argument("--rank", type=int, default=0, metavar="N", help="which rank (default 0)")
    parser.add_argument("-f", "--follow", action="store_true", help="go on while the run is live")


def _add_report(parsers: _Parsers) -> None:
    parser = _command(
        parsers,
        "report",
        "results: tables, plots, HTML",
        "Tables here, and report/report.html with plots in the run's folder. Several runs: side by side.",
    )
    parser.add_argument("runs", nargs="+", metavar="RUN", help=_RUN_HELP)
    parser.add_argument("--output", metavar="FILE", help="where the comparison of several runs goes (HTML)")
    _json(parser)


def _add_evaluate(parsers: _Parsers) -> None:
    evaluate.add_arguments(_command(parsers, "evaluate", evaluate.SUMMARY, evaluate.DESCRIPTION), _RUN_HELP)


def _add_cancel(parsers: _Parsers) -> None:
    parser = _command(
        parsers,
        "cancel",
        "end live runs",
        "Cancel the jobs of runs; local processes save and leave. A cancelled run can be resumed.",
    )
    parser.add_argument("runs", nargs="+", metavar="RUN", help=_RUN_HELP)


def _add_requeue(parsers: _Parsers) -> None:
    parser = _command(
        parsers,
        "requeue",
        "send running jobs back into the queue",
        "A running job saves, goes back into the queue and continues later; one that was requeued and waits\n"
        "for Slurm's two minutes may start at once.",
    )
    parser.add_argument("runs", nargs="+", metavar="RUN", help=_RUN_HELP)


def _add_watch(parsers: _Parsers) -> None:
    parser = _command(
        parsers,
        "watch",
        "where everything stands, live",
        "As status, again and again until Ctrl-C. Requeued jobs that wait for Slurm's two minutes are let\n"
        "start at once. Without RUN: all under STK_EXPERIMENT_DIR.",
    )
    parser.add_argument("runs", nargs="*", metavar="RUN", help=_RUN_HELP)
    parser.add_argument(
        "--interval", type=float, default=5.0, metavar="S", help="seconds between two looks (default 5)"
    )
    parser.add_argument("--until-finished", action="store_true", help="end when no run is live any more")


def _add_prepare(parsers: _Parsers) -> None:
    parser = _command(
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
    _experiment(parser)
    _cluster(parser, "local", "local (default): here and now; slurm: as a job; auto: as a job where possible")
    parser.add_argument(
        "--cpus",
        type=sweep.positive,
        metavar="N",
        help="CPUs of the job (default: resources.cpus_per_task)",
    )
    _json(parser)


def _add_replay(parsers: _Parsers) -> None:
    parser = _command(
        parsers,
        "replay",
        "recompute any step of a run",
        "Recompute one step from the run's folder, with the run's own code: its samples, learning rate and\n"
        "loss, compared with the step's receipt. Touches nothing. Exit code 1 where they differ.",
    )
    parser.add_argument("run", metavar="RUN", help=_RUN_HELP)
    parser.add_argument("--step", type=int, required=True, metavar="N", help="which step, counted from 1")
    _json(parser)


def _add_diff(parsers: _Parsers) -> None:
    parser = _command(
        parsers,
        "diff",
        "find the first step at which two runs differ",
        "Compare two runs step by step: samples, losses, weights, and what may explain a difference.\n"
        "Exit code 0 where they are equal as far as both go, 1 where they differ.",
    )
    parser.add_argument("run", metavar="RUN", help=_RUN_HELP)
    parser.add_argument("other", metavar="RUN", help="the run to compare it with")
    _json(parser)


def _add_drill(parsers: _Parsers) -> None:
    parser = _command(
        parsers,
        "drill",
        "prove on this cluster that an interrupted run comes back",
        "Interrupt a run on purpose (preempted, out of time, killed, on another number of processes),\n"
        "compare its checkpoints with those of an undisturbed one, and print a verdict. Without CONFIG on a\n"
        "tiny task that needs no data. Exit code 0 where all came back with the same bytes, else 4.",
    )
    parser.add_argument("config", nargs="?", metavar="CONFIG", help=_CONFIG_HELP)
    parser.add_argument("overrides", nargs="*", metavar="key=value", help="set a key of the experiment")
    _cluster(parser)
    parser.add_argument("--procs", type=int, default=2, metavar="N", help="local processes (default 2)")
    parser.add_argument("--keep", action="store_true", help="keep the drill's runs even if all is well")
    _json(parser)


def _add_entities(parsers: _Parsers) -> None:
    entities.add_actions(
        _command(
            parsers,
            "entities",
            "sentences with mentions, and what they may mean",
            entities.DESCRIPTION,
        )
    )


def _add_spelling(parsers: _Parsers) -> None:
    spelling.add_actions(
        _command(
            parsers,
            "spelling",
            "dictionaries, misspellings, tokenizers, benchmarks",
            spelling.DESCRIPTION,
        )
    )


def _add_use(parsers: _Parsers) -> None:
    detect = _command(parsers, "detect", use.DETECT_SUMMARY, use.DETECT)
    use.add_detect(detect, _RUN_HELP)
    correct = _command(parsers, "correct", use.CORRECT_SUMMARY, use.CORRECT)
    use.add_correct(correct, _RUN_HELP)
