"""The command `stk`, also as `python -m slurm`."""

from __future__ import annotations

import gc
import sys


def main() -> int:
    """Run the command and return its exit code."""
    if sys.argv[1:2] == ["run"]:
        from toolkit.reliability.early_signals import hold_back

        # Before the slow imports: a stop signal during them must not count as a crash.
        hold_back()
    else:
        from toolkit.system.numpy_import import leave_out_threads

        leave_out_threads()
        # A short command keeps most of its objects. The default, 700 in Python 3.11, would search them a
        # hundred times.
        gc.set_threshold(50_000)
    try:
        from slurm.cli import main as command
    except KeyboardInterrupt:
        from toolkit.exit_codes import ExitCode

        return ExitCode.INTERRUPTED
    return command()


if __name__ == "__main__":
    sys.exit(main())
