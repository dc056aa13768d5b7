"""One rank of a local drill; it runs the same code as a task of a job's step.

python -m slurm.drill.rank RUN_DIR
"""

from __future__ import annotations

from pathlib import Path

from slurm.job.task import run_rank
from toolkit.run.run_dir import RunDir
from toolkit.system.process_main import process_main
from toolkit.system.world import World

if __name__ == "__main__":
    process_main(lambda argv: run_rank(RunDir(Path(argv[0])), World.from_environment()))
