"""Start the ranks of a run on this machine: python -m toolkit.launch RUN PROCESSES"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from toolkit.launch.launcher import launch
from toolkit.launch.machines.coordination import Nodes
from toolkit.launch.machines.layout import Machines
from toolkit.run.run_dir import RunDir

if __name__ == "__main__":
    this_machine = Nodes(Machines.alone(int(sys.argv[2])))
    sys.exit(launch(RunDir(Path(sys.argv[1])), os.environ, this_machine, quiet=True))
