"""The arguments of the commands about runs."""

from __future__ import annotations

import argparse
import re
from contextlib import suppress
from datetime import datetime
from time import time
from typing import get_args

from slurm.commands.common import RUN_HELP, Parsers, command, positive
from toolkit.command import add_json

#: Seconds of the units of a period.
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
_PERIOD = re.compile(r"(\d+(?:\.\d+)?)\s*([smhdw])", re.ASCII)

_STATUS = """\
Show a table of runs: state, reason of waiting, progress, loss and main metric, restarts, hosts,
GPU-hours. It has as many columns as fit the terminal; --json has all.
Without RUN: all under STK_EXPERIMENT_DIR.
"""
_LOGS = """\
Show the log of one rank of the newest attempt. After a failure, show first what failed and what to do,
then the log of the rank that failed first.
"""
_CANCEL = "Cancel the jobs of runs; background processes save and exit. A cancelled run can be resumed."
_REQUEUE = """\
A running job saves, is requeued and continues later. A requeued job that waits for Slurm's delay of
two minutes may start at once.
"""
_CLEAN = """\
Delete old checkpoints of runs that have ended, after showing what would be deleted. Never deleted: the best
checkpoint, the newest good one of a run that has not finished, one that another run of this experiment folder
starts from, anything of a live run.

  stk clean --dry-run                       what could be deleted under STK_EXPERIMENT_DIR
  stk clean RUN --keep-last 0               keep only the best checkpoint, else the newest
  stk clean --state finished --older-than 7d --logs --old --yes
"""
_WATCH = """\
As status, updated until Ctrl-C. Requeued jobs that wait for Slurm's delay of two minutes are released.
Without RUN: all under STK_EXPERIMENT_DIR, in a terminal with keys to select a run and open it. One RUN in a
terminal: its curves, its times, the use of its ranks and its log, with keys to cancel, requeue and follow the
log. Each update reads the files; Slurm is queried at most twice a minute.
"""


def status(parsers: Parsers) -> None:
    parser = command(parsers, "status", "show the state of runs", _STATUS)
    parser.add_argument("runs", nargs="*", metavar="RUN", help=RUN_HELP)
    parser.add_argument("--live", action="store_true", help="only runs that wait, train or are held")
    parser.add_argument(
        "--state",
        type=states,
        default=frozenset(),
        metavar="LIST",
        help="only these states, such as running,failed",
    )
    parser.add_argument("--name", metavar="GLOB", help="only ids that match, such as 'bert-*'")
    parser.add_argument("--sweep", metavar="GLOB", help="only runs of arrays whose name matches")
    parser.add_argument(
        "--since", type=moment, metavar="TIME", help="only runs active since then: 2d, 3h, 2026-03-01"
    )
    parser.add_argument(
        "--sort",
        choices=("name", "state", "progress", "metric", "age", "gpu-hours"),
        default="name",
        help="order: name (default), state (running first, finished last), progress (furthest first), "
        "metric (best first), age (newest first), gpu-hours (most first)",
    )
    parser.add_argument("--reverse", action="store_true", help="reverse the order")
    add_json(parser)


def logs(parsers: Parsers) -> None:
    parser = command(parsers, "logs", "the logs of a run", _LOGS)
    parser.add_argument("run", metavar="RUN", help=RUN_HELP)
    parser.add_argument(
        "--rank", type=_rank, metavar="N", help="a rank, all, or batch: the output of the batch script"
    )
    parser.add_argument(
        "--attempt", type=_attempt, default="newest", metavar="K", help="an attempt by its number, or all"
    )
    parser.add_argument("-f", "--follow", action="store_true", help="keep printing while the run is live")
    parser.add_argument("--merge", action="store_true", help="the lines of all ranks, by time")
    parser.add_argument("--lines", type=positive, metavar="N", help="only the last N lines")
    parser.add_argument("--list", action="store_true", help="which attempts and ranks have logs")
    parser.add_argument("--failure", action="store_true", help="only what failed, with its stack trace")
    add_json(parser)


def cancel(parsers: Parsers) -> None:
    parser = command(parsers, "cancel", "end live runs", _CANCEL)
    parser.add_argument("runs", nargs="+", metavar="RUN", help=RUN_HELP)


def requeue(parsers: Parsers) -> None:
    parser = command(parsers, "requeue", "save and requeue running jobs", _REQUEUE)
    parser.add_argument("runs", nargs="+", metavar="RUN", help=RUN_HELP)


def clean(parsers: Parsers) -> None:
    parser = command(parsers, "clean", "delete old checkpoints, after a preview", _CLEAN)
    parser.add_argument("runs", nargs="*", metavar="RUN", help=RUN_HELP)
    parser.add_argument(
        "--keep-last",
        type=_count,
        default=1,
        metavar="N",
        help="number of the newest checkpoints to keep, besides the best (default 1)",
    )
    parser.add_argument(
        "--older-than", type=period_s, default=0.0, metavar="AGE", help="only what is older: 30m, 12h, 7d, 2w"
    )
    parser.add_argument(
        "--state",
        action="append",
        choices=("finished", "failed", "cancelled", "held"),
        help="only runs in this state; may be given several times (default: all that have ended)",
    )
    parser.add_argument("--logs", action="store_true", help="also logs of earlier attempts")
    parser.add_argument("--old", action="store_true", help="also whole runs that --fresh has set aside")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--dry-run", action="store_true", help="show what would be deleted, and delete nothing")
    how.add_argument("--yes", action="store_true", help="delete without asking")
    add_json(parser)


def watch(parsers: Parsers) -> None:
    parser = command(parsers, "watch", "show the state of runs, live", _WATCH)
    parser.add_argument("runs", nargs="*", metavar="RUN", help=RUN_HELP)
    parser.add_argument(
        "--interval", type=_interval, default=5.0, metavar="S", help="seconds between two updates (default 5)"
    )
    parser.add_argument("--until-finished", action="store_true", help="exit when no run is live any more")


def _interval(text: str) -> float:
    with suppress(ValueError):
        if 0 < (seconds := float(text)) <= 1e6:
            return seconds
    raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds, above 0 and at most a million")


def states(text: str) -> frozenset[str]:
    """Return the states of a list such as `running,failed`."""
    from slurm.client.queue import State  # late, so that other commands do not pay for it

    found = [word.strip() for word in text.split(",")]
    for word in found:
        if word not in get_args(State):
            raise argparse.ArgumentTypeError(f"{word!r} is not one of {', '.join(get_args(State))}")
    return frozenset(found)


def moment(text: str) -> float:
    """Return seconds since the epoch of a period before now (2d), or a local date (2026-03-01T14:00)."""
    with suppress(argparse.ArgumentTypeError):
        return time() - period_s(text)
    with suppress(ValueError, OverflowError):
        return datetime.fromisoformat(text.strip()).timestamp()
    raise argparse.ArgumentTypeError(
        f"{text!r} is neither a span such as 2d, 3h or 30m, nor a date such as 2026-03-01"
    )


def period_s(text: str) -> float:
    """Return the seconds of a period such as `2d`."""
    if (match := _PERIOD.fullmatch(text.strip())) is None:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a period: expected a number and s, m, h, d or w, such as 7d"
        )
    return float(match[1]) * _UNITS[match[2]]


def _rank(text: str) -> int | str:
    return text if text in ("all", "batch") else _number(text, 0, "a rank, all or batch")


def _attempt(text: str) -> int | str:
    return text if text in ("all", "newest") else _number(text, 1, "the number of an attempt, or all")


def _count(text: str) -> int:
    return _number(text, 0, "a number from 0")


def _number(text: str, least: int, expected: str) -> int:
    if not text.isdecimal() or int(text) < least:
        raise argparse.ArgumentTypeError(f"{text!r} is not {expected}")
    return int(text)
