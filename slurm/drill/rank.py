"""One rank of a rehearsal: what a job's step would start, without the job.

python -m slurm.drill.rank RUN_DIR
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from slurm.job import run_rank
from toolkit.rundir import RunDir
from toolkit.world import World

if __name__ == "__main__":
    status = run_rank(RunDir(Path(sys.argv[1])), World.from_environment())
    sys.stdout.flush()
    sys.stderr.flush()
    # As toolkit.worker leaves: a thread of torch's may abort an interpreter that ends (Python before 3.14).
    os._exit(status)
