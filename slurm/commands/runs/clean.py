"""stk clean"""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import asdict

from slurm.runs.cleaning.choosing import ENDED, Item, Proposal, Wishes, propose
from slurm.runs.cleaning.removing import remove_items
from toolkit.errors import UserError
from toolkit.exit_codes import ExitCode
from toolkit.run.run_dir import experiment_dir, runs_named
from toolkit.system.output.amounts import size
from toolkit.system.output.sanitize import clean


def run(arguments: Namespace) -> int:
    parent = experiment_dir()
    wishes = Wishes(
        keep_last=arguments.keep_last,
        older_than_s=arguments.older_than,
        states=tuple(arguments.state or ENDED),
        logs=arguments.logs,
        old=arguments.old,
    )
    runs = list(dict.fromkeys(runs_named(arguments.runs)))
    proposal = propose(runs, parent, wishes, only_these=bool(arguments.runs))
    if not arguments.json:
        _show(proposal)
    removed: Sequence[Item] = ()
    failed: Mapping[str, str] = {}
    if proposal.items and _is_wanted(arguments, proposal):
        removed, failed = remove_items(proposal.items, parent, wishes)
    if arguments.json:
        print(json.dumps(_answer(proposal, removed, failed)))
    elif removed:
        print(f"deleted {_count_and_size(removed)}")
    for run_id, why in failed.items():
        print(f"error: {clean(run_id)}: {clean(why)}", file=sys.stderr)
    return ExitCode.WRONG_INPUT if failed else 0


def _show(proposal: Proposal) -> None:
    from slurm.runs.cleaning.table import table
    from slurm.status.table import console_for_tables

    if not proposal.items:
        print("nothing to delete")
    console_for_tables().print(table(proposal))
    if proposal.items:
        print(f"in all {_count_and_size(proposal.items)}")


def _is_wanted(arguments: Namespace, proposal: Proposal) -> bool:
    """Whether the user wants to delete, by options or by asking. Raises UserError if there is no terminal."""
    if arguments.dry_run or arguments.yes:
        return bool(arguments.yes)
    if arguments.json or not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UserError("nothing was deleted: --yes deletes it, --dry-run only shows it")
    return input("Delete all of it? [y/N] ").strip().lower() in ("y", "yes")


def _count_and_size(items: Sequence[Item]) -> str:
    things = "1 thing" if len(items) == 1 else f"{len(items)} things"
    return f"{things}, {size(sum(item.bytes for item in items))}"


def _answer(proposal: Proposal, removed: Sequence[Item], failed: Mapping[str, str]) -> dict[str, object]:
    return {
        "items": [item.to_json() for item in proposal.items],
        "kept": [asdict(each) for each in proposal.kept],
        "bytes": proposal.bytes,
        "deleted": [str(path) for item in removed for path in item.paths],
        "deleted_bytes": sum(item.bytes for item in removed),
        "failed": dict(failed),
    }
