"""stk completion"""

from __future__ import annotations

from argparse import Namespace

from slurm.cli import make_parser
from slurm.completion.scripts import SCRIPTS
from toolkit.errors import UserError


def run(arguments: Namespace) -> int:
    """Print a shell's script, or what could stand next."""
    if arguments.candidates is not None:
        from slurm.completion.candidates import candidates

        for each in candidates(make_parser(), arguments.candidates):
            print(each)
    elif arguments.shell is None:
        raise UserError("which shell? stk completion bash, zsh or fish")
    else:
        print(SCRIPTS[arguments.shell], end="")
    return 0
