"""The arguments of `stk completion`."""

from __future__ import annotations

import argparse

from slurm.arguments.common import Parsers, command

_DESCRIPTION = """\
Print a script that completes stk on Tab: commands, options and their choices, runs, keys of the experiment.

  source <(stk completion bash)                                    in ~/.bashrc
  source <(stk completion zsh)                                     in ~/.zshrc, after compinit
  stk completion fish > ~/.config/fish/completions/stk.fish
"""


def add(parsers: Parsers) -> None:
    """Add the command."""
    parser = command(parsers, "completion", "completion on Tab for bash, zsh and fish", _DESCRIPTION)
    parser.add_argument("shell", nargs="?", choices=("bash", "zsh", "fish"), help="what the script is for")
    # The scripts ask so, with all words behind `stk` up to the cursor.
    parser.add_argument("--candidates", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
