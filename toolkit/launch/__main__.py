"""Start the ranks of a run on this machine: python -m toolkit.launch RUN PROCESSES"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from toolkit.reliability.early_signals import hold_back


def main(run: str, processes: str) -> int:
    """Start the ranks and wait for them; return the exit code for the user."""
    hold_back()
    # Only now: the imports take a while.
    from toolkit.launch.launcher import launch
    from toolkit.launch.machines.coordination import Nodes
    from toolkit.launch.machines.layout import Machines
    from toolkit.run.run_dir import RunDir

    return launch(RunDir(Path(run)), os.environ, Nodes(Machines.alone(int(processes))), quiet=True)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
