"""The commands that workloads add to `stk`. Imported only if one of them is needed."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Collection

from slurm.commands.common import Parsers, add_trust_folder, parser_of
from toolkit.command import Command
from toolkit.errors import UserError
from toolkit.registry import commands, load_code, not_imported


def names() -> list[str]:
    return [name for codes in commands().values() for name in codes]


def add(parsers: Parsers, only: Collection[str] | None) -> dict[str, str]:
    """Add the named commands, or all (None), with arguments; return headings by the first command below.

    If a name exists several times, the first is taken. Raises UserError if one of `only` cannot be imported.
    """
    headings = {}
    for workload, codes in commands().items():
        wanted = [name for name in codes if name not in parsers.choices and (only is None or name in only)]
        for name in wanted:
            try:
                command = load_code(codes[name])
                if not isinstance(command, Command):
                    raise TypeError(f"a {type(command).__name__}, expected a Command")
            # A module may call sys.exit when it is imported.
            except (Exception, SystemExit) as error:
                why = not_imported(codes[name], error)
                if only is not None:
                    raise UserError(why) from error
                # Listed, and the others still work.
                parser_of(parsers, name, why.replace("%", "%%"), why)
                continue
            parser = parser_of(parsers, name, command.summary, command.description)
            parser.set_defaults(workload_run=command.run)
            if command.executes_run:
                add_trust_folder(parser)
            command.add_arguments(parser)
        if wanted:
            headings[wanted[0]] = f"commands of {workload.replace('_', ' ')}"
    return headings


def run(arguments: Namespace) -> int:
    from slurm.commands.run_snapshot import SnapshotHost

    code = arguments.workload_run
    try:
        command = load_code(code)
    except ModuleNotFoundError as error:
        raise UserError(not_imported(code, error)) from error
    return int(command(arguments, SnapshotHost()))
