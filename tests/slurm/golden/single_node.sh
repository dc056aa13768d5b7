#!/bin/bash
#SBATCH --job-name=tiny-0123abcd.0
#SBATCH --chdir=/scratch/me/experiments/tiny-0123abcd
#SBATCH --output=logs/%j.batch.log
#SBATCH --open-mode=append
#SBATCH --requeue
#SBATCH --signal=USR2@120
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=1

export PYTHONPATH=/scratch/me/experiments/tiny-0123abcd/code${PYTHONPATH:+:$PYTHONPATH}
export PYTHONUNBUFFERED=1
export SUBMITIT_EXECUTOR=slurm
export TORCH_CPP_LOG_LEVEL=${TORCH_CPP_LOG_LEVEL:-ERROR}

[ -e "submitit/${SLURM_JOB_ID}_submitted.pkl" ] || ln -f submitit/job.pkl "submitit/${SLURM_JOB_ID}_submitted.pkl" || exit 1
mkdir -p logs

# The ranks save when they are asked to leave: no signal may end this script before them.
trap '' TERM INT HUP USR1 USR2
while true; do
srun --kill-on-bad-exit=1 --wait=0 --cpus-per-task=${SLURM_CPUS_PER_TASK:-1} --unbuffered --open-mode=append --output="logs/%j.%s.${SLURM_RESTART_COUNT:-0}.rank_%5t.log" '/opt/my venv/bin/python' -u -m submitit.core._submit submitit
code=$?

# A step that did not finish the run: does the run go on, and how?
[ "$code" != 0 ] || break
'/opt/my venv/bin/python' -P -m slurm.after_step /scratch/me/experiments/tiny-0123abcd "$code" in-place
[ "$?" = 79 ] || break
done
exit "$code"
