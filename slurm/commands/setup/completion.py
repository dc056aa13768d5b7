"""stk completion"""

from __future__ import annotations

from argparse import Namespace

from slurm.commands.completion.scripts import SCRIPTS
from slurm.commands.parser import make_parser
from toolkit.errors import UserError


def run(arguments: Namespace) -> int:
    """Print the script of a shell, or candidates for the next word."""
    if arguments.candidates is not None:
        from slurm.commands.completion.candidates import candidates

        words = arguments.candidates
        # The parser of the named command has all its arguments.
        parser = make_parser(words[:1] if len(words) > 1 else None)
        for each in candidates(parser, words):
            print(each)
    elif arguments.shell is None:
        raise UserError("which shell? stk completion bash, zsh or fish")
    else:
        print(SCRIPTS[arguments.shell], end="")
    return 0
