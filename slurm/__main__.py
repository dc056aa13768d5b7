"""The command `stk`, which is `python -m slurm` too."""

from __future__ import annotations

import sys


def main() -> int:
    """Run the command and return its exit code."""
    if sys.argv[1:2] == ["run"]:
        from toolkit.reliability.early_stop import hold_back

        # First: the imports take a while, and a stop during them is not a crash.
        hold_back()
    from slurm.cli import main as command

    return command()


if __name__ == "__main__":
    sys.exit(main())
