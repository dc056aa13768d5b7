"""The command `stk`: arguments in, exit code out. `slurm.commands` does the work."""

from __future__ import annotations

import argparse
import errno
import os
import re
import sys
from collections.abc import Sequence
from typing import TextIO, cast

from slurm.commands.command_line import refuse_without_dashes, with_file
from slurm.commands.common import report_error
from slurm.commands.parser import import_module, parser_for
from toolkit.errors import StkError, UserError
from toolkit.exit_codes import ExitCode
from toolkit.run import folder_trust
from toolkit.system.output.command_output import CommandOutput, ReaderLeft
from toolkit.system.output.lasting_streams import lasting
from toolkit.system.output.sanitize import clean

#: Commands that do more than print: they continue if the output has no reader.
_ACTING = ("submit", "run", "resume", "requeue", "cancel", "clean", "prepare", "sweep", "evaluate", "drill")
#: Errors of a full or failing disk, or of a network file system. Such an error may lack the name of the file.
_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS, errno.ESTALE, errno.ETIMEDOUT)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code (toolkit.exit_codes.ExitCode)."""
    streams = sys.stdout, sys.stderr
    # Errors of standard error itself are ignored: they cannot be reported.
    sys.stderr = lasting(sys.stderr)
    output = CommandOutput(sys.stdout)
    sys.stdout = cast(TextIO, output)
    try:
        return _exit_code(argv, output)
    finally:
        sys.stdout, sys.stderr = streams


def _exit_code(argv: Sequence[str] | None, output: CommandOutput) -> int:
    """Run the command; report what went wrong in one message."""
    try:
        command, code = _flushed(argv, output)
    except ReaderLeft:
        return ExitCode.DONE
    except StkError as error:
        return report_error(error)
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED
    except OSError as error:
        if error.filename is not None:
            name = clean(os.fsdecode(error.filename))
        elif error.errno == errno.ENOENT and _is_directory_gone():
            name = "the working directory was deleted"
        elif error.errno in _DISK:
            name = "a file cannot be read or written"
        else:
            raise
        print(f"error: {name}: {error.strerror}", file=sys.stderr)
        return ExitCode.WRONG_INPUT
    if output.failure is None:
        return code
    print(f"error: {output.failure}; the work of the command itself is done", file=sys.stderr)
    # A successful `stk run` stays successful, even if its output could not be written.
    return code if code or command == "run" else output.failure.exit_code


def _is_directory_gone() -> bool:
    try:
        os.getcwd()
    except FileNotFoundError:
        return True
    return False


def _flushed(argv: Sequence[str] | None, output: CommandOutput) -> tuple[str, int]:
    """Run the command; return its name and exit code. Output is flushed here, where a failure is caught."""
    try:
        arguments = _parse(argv)
        output.keeps_going = arguments.command in _ACTING
        folder_trust.trust(getattr(arguments, "trust_folder", []))
        if "workload_run" in arguments:
            from slurm.commands import workloads

            return arguments.command, workloads.run(arguments)
        command = import_module(arguments.command, arguments.command)
        return arguments.command, int(command.run(arguments))
    except Exception:
        # This error is reported, not a later one of the output.
        output.keeps_going = True
        raise
    finally:
        output.flush()


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """Return parsed arguments; unlike argparse, accept key=value and further runs after options."""
    words = with_file(sys.argv[1:] if argv is None else argv)
    if words[:2] == ["completion", "--candidates"]:
        # All words after `stk` up to the cursor. argparse would drop `--`.
        return argparse.Namespace(command=words[0], candidates=words[2:])
    parser = parser_for(words[0] if words else "")
    # Without the `=`, argparse would take the next word as the value, which may be the experiment file.
    arguments, rest = parser.parse_known_args(
        [f"{word}=" if word == "--trust-folder" else word for word in words]
    )
    if "config" in arguments and "overrides" in arguments:
        strays = [word for word in (*arguments.overrides, *rest) if word.startswith("-") or "=" not in word]
        refuse_without_dashes(words, arguments.config, strays)
    lists = [getattr(arguments, name) for name in ("overrides", "runs") if hasattr(arguments, name)]
    if rest and (not lists or any(word.startswith("-") for word in rest)):
        is_key = any(re.match(r"--\w+\.\w", word) for word in rest)
        hint = "; keys have no dashes: train.epochs=3" if is_key else ""
        if "--dry-run" in rest and arguments.command in ("submit", "run"):
            hint += "; `stk plan` shows what would be done, and changes nothing"
        if arguments.command == "resume" and any("=" in word for word in rest):
            hint = (
                "; a run keeps its keys. For other resources, repeat `stk submit FILE` with them; other keys "
                "make another run, which train.start_from_checkpoint=RUN starts with the weights of this one"
            )
        arguments.parser.error(f"unrecognized arguments: {' '.join(rest)}{hint}")
    if rest and getattr(arguments, "then", None):
        arguments.parser.error(f"{rest[0]}: write key=value right after its file, before any option")
    for known in lists:
        known.extend(rest)
    if "resource_overrides" in arguments:
        _refuse_two_values(arguments)
        # An option also changes a key of `resources=…`.
        arguments.overrides = [*arguments.overrides, *arguments.resource_overrides]
    return arguments


def _refuse_two_values(arguments: argparse.Namespace) -> None:
    """Raise UserError if an option and a key=value set a key differently: one of them would be ignored."""
    if not (arguments.resource_overrides and arguments.overrides):
        return
    from toolkit.config.composition.overrides import last_values

    typed = last_values(arguments.overrides)
    for key, (_, value) in last_values(arguments.resource_overrides).items():
        text, other = typed.get(key, ("", value))
        # The value of a reference is not known yet.
        if _meaning(key, value) != _meaning(key, other) and "${" not in f"{text} {value}":
            option = f"--{key[1].replace('_', '-')}"
            raise UserError(f"{option} and {text} set the same key to two values: leave one of them out")


def _meaning(key: Sequence[str], value: object) -> object:
    """A value in a form in which equal amounts are equal: 1:00:00 and 60, or 1G and 1024."""
    from slurm.client.quantities import parse_mb, parse_minutes
    from slurm.config.amount_rules import MEMORY

    text = str(value)
    parse = parse_minutes if key[-1] == "time" else parse_mb if key[-1] in MEMORY else str
    try:
        return parse(text)
    except (UserError, ValueError):
        return text
