"""stk logs"""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Iterable, Mapping
from typing import Any

from slurm.runs.logs.attempts import LoggedAttempt, chosen, failure_of, logged_attempts
from slurm.runs.logs.listing import entries, table
from slurm.runs.logs.showing import by_time, each
from slurm.runs.logs.sources import Rank, sources
from slurm.status.phrases import stopped_by
from toolkit.errors import RunNotFound, UserError
from toolkit.files import read_end
from toolkit.run.attempts.outcome import Outcome
from toolkit.run.attempts.records import read_attempts
from toolkit.run.failure.format import format_failure
from toolkit.run.run_dir import RunDir, find_run
from toolkit.system.output.json_text import json_text
from toolkit.system.output.sanitize import clean


def run(arguments: Namespace) -> int:
    """Show the logs of a run; after a failure, first its reason."""
    _check(arguments)
    target = find_run(arguments.run)
    try:
        if arguments.list:
            if arguments.json:
                print(json_text(entries(target)))
            else:
                _print(map(clean, table(target)))
        elif arguments.failure:
            _show_failure(target, arguments)
        elif arguments.follow:
            _follow(target, arguments)
        else:
            _show(target, arguments)
    except OSError as error:
        raise UserError(f"{error.filename} cannot be read: {error.strerror}") from error
    return 0


def _check(arguments: Namespace) -> None:
    if arguments.json and not (arguments.list or arguments.failure):
        raise UserError("--json goes with --list or --failure: a log itself is text")
    if arguments.merge and arguments.rank not in (None, "all"):
        raise UserError(f"--merge mixes the logs of all ranks, but --rank is {arguments.rank}: leave one out")
    if arguments.follow and (arguments.list or arguments.failure):
        raise UserError("-f follows a log: it does not go with --list or --failure")


def _print(lines: Iterable[str], *, at_once: bool = False) -> None:
    for line in lines:
        print(line, flush=at_once)


def _print_failure(failure: Mapping[str, Any]) -> None:
    """Print the failure, with colours on a terminal."""
    if sys.stdout.isatty():
        from rich.console import Console

        from slurm.runs.logs.rendering import failure_view

        Console(highlight=False).print(failure_view(failure))
    else:
        print(format_failure(failure), flush=True)


def _wanted(target: RunDir, arguments: Namespace) -> tuple[LoggedAttempt | None, dict[str, Any] | None]:
    """Return the attempt with this number, by default the newest, and its failure; None without one."""
    every = logged_attempts(target)
    attempt = every[-1] if every else None
    if isinstance(arguments.attempt, int):
        attempt = chosen(target, arguments.attempt, every)
    return attempt, failure_of(target, attempt, is_newest=attempt is None or attempt is every[-1])


def _show_failure(target: RunDir, arguments: Namespace) -> None:
    attempt, failure = _wanted(target, arguments)
    if arguments.json:
        print(json_text(failure))
    elif failure is None:
        why = attempt.record.why if attempt and attempt.record else None
        ended = f" ({why if why == Outcome.FINISHED.value else stopped_by(why)})" if why else ""
        print(f"{target.run_id}: no failure is recorded of that attempt{ended}")
    else:
        _print_failure(failure)
        if failure.get("traceback"):
            print("\n" + clean(str(failure["traceback"])).rstrip())


def _show(target: RunDir, arguments: Namespace) -> None:
    _, failure = _wanted(target, arguments)
    if failure is not None:
        _print_failure(failure)
        print()
    known = failure.get("rank") if failure is not None else None
    culprit = known if isinstance(known, int) else None
    rank = _rank(target, arguments, culprit)
    try:
        found = sources(target, rank, arguments.attempt, first=culprit)
    except RunNotFound as error:
        if failure is None:
            _explain_no_log(target)
            raise
        # The attempt ended before it had a log; its failure has been shown.
        print(error, file=sys.stderr)
        return
    if failure is None and not any(read_end(source.path, 1) for source in found):
        _explain_no_log(target)
    show = by_time if arguments.merge else each
    _print(show(found, arguments.lines))
    if arguments.rank is None and rank not in (0, "all"):
        hint = f"(rank {rank} failed first; --rank 0 shows rank 0, --rank all shows all)"
        print(hint, file=sys.stderr)


def _explain_no_log(target: RunDir) -> None:
    """Print why the newest job of a run was not started again, if that is known."""
    from slurm.status.decisions import why_not_continued
    from slurm.status.submissions import last_submission

    submission, newest = last_submission(target), next(reversed(read_attempts(target)), None)
    if why := why_not_continued(target, newest, submission.job_id if submission else None):
        print(clean(f"{target.run_id} was not started again: {why}"), flush=True)


def _rank(target: RunDir, arguments: Namespace, culprit: int | None) -> Rank:
    """Return the rank of the log: as given, else the rank that failed first if it has a log, else rank 0."""
    if arguments.merge:
        return "all"
    if arguments.rank is not None:
        given: Rank = arguments.rank
        return given
    every = logged_attempts(target)
    shown = next((attempt for attempt in reversed(every) if attempt.logs), None)
    if isinstance(arguments.attempt, int):
        shown = chosen(target, arguments.attempt, every)
    has_log = shown is not None and culprit in shown.logs
    return culprit if culprit is not None and has_log else 0


def _follow(target: RunDir, arguments: Namespace) -> None:
    from slurm.runs.logs.following import Follower, liveness

    (_, before), is_live = _wanted(target, arguments), liveness(target)
    if before is not None and not is_live():
        _show(target, arguments)
        return
    if before is not None:
        _print_failure(before)
        print(flush=True)
    rank: Rank = "all" if arguments.merge else arguments.rank or 0
    attempt, lines = arguments.attempt, arguments.lines
    follower = Follower(run=target, rank=rank, attempt=attempt, lines=lines, is_live=is_live)
    _print(follower.read(), at_once=True)
    _, failure = _wanted(target, arguments)
    if failure is not None and failure != before:
        print()
        _print_failure(failure)
