"""The command `stk`: arguments in, exit code out. `slurm.commands` does the work."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from slurm.commands.command_line import with_file, without_a_value
from slurm.commands.parser import parser_for, room
from toolkit.errors import ExitCode, StkError
from toolkit.run import folder_trust
from toolkit.system.sanitize import clean


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code (toolkit.errors.ExitCode)."""
    try:
        code = _run(_parse(argv))
        # Flushed here, where a closed pipe is caught, and not when the interpreter exits.
        sys.stdout.flush()
        return code
    except StkError as error:
        # It may quote the name of a folder, which another user may have chosen, or a value of the experiment.
        print(f"error: {clean(_without_secrets(str(error)))}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        # The reader of a pipe, such as `head`, has seen enough.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.DONE
    except OSError as error:
        if error.filename is None:
            raise
        print(f"error: {clean(os.fsdecode(error.filename))}: {error.strerror}", file=sys.stderr)
        return ExitCode.WRONG_INPUT


def _without_secrets(text: str) -> str:
    from toolkit.config.secrets import concealed  # only for an error

    return concealed(text)


def _run(arguments: argparse.Namespace) -> int:
    """Import the command, only now so that no command pays for another's imports, and run it."""
    folder_trust.trust(getattr(arguments, "trust_folder", []))
    if "workload_run" in arguments:
        from slurm.commands import workloads

        return workloads.run(arguments)
    return int(room(arguments.command, arguments.command).run(arguments))


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """Parsed arguments; key=value and further runs may also stand after options, which argparse refuses."""
    words = with_file(sys.argv[1:] if argv is None else argv)
    parser = parser_for(words[0] if words else "")
    arguments, rest = parser.parse_known_args(without_a_value(words, "--trust-folder"))
    lists = [getattr(arguments, name) for name in ("overrides", "runs") if hasattr(arguments, name)]
    if rest and (not lists or any(word.startswith("-") for word in rest)):
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    if rest and getattr(arguments, "then", None):
        parser.error(f"{rest[0]}: key=value stands right behind the file that it is for, before any option")
    for known in lists:
        known.extend(rest)
    if "resource_overrides" in arguments:
        arguments.overrides = [*arguments.resource_overrides, *arguments.overrides]
    return arguments
