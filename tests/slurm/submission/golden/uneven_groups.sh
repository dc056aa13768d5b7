#!/bin/bash
#SBATCH --job-name=tiny-0123abcd.0
#SBATCH --chdir=/scratch/me/experiments/tiny-0123abcd
#SBATCH --output=logs/%j.batch.log
#SBATCH --open-mode=append
#SBATCH --requeue
#SBATCH --signal=USR2@120
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=3
#SBATCH --cpus-per-task=2
#SBATCH --partition=long
#SBATCH --comment="one heterogeneous job"
#SBATCH --gres=gpu:3
#SBATCH hetjob
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=2
#SBATCH --partition=short
#SBATCH --gres=gpu:1
#SBATCH --constraint=v100
#SBATCH hetjob
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=2
#SBATCH --partition=long

# (the lines of slurm.submission.batch.folder_guard, as in single_node.sh)

# These tokens belong to the host of the submission, and expire soon.
unset SLURM_JWT SLURM_SACK_SOCKET
export PYTHONPATH=/scratch/me/experiments/tiny-0123abcd/code${PYTHONPATH:+:$PYTHONPATH}
export PYTHONUNBUFFERED=1
export SUBMITIT_EXECUTOR=slurm
export TORCH_CPP_LOG_LEVEL=${TORCH_CPP_LOG_LEVEL:-ERROR}

[ -e "submitit/${SLURM_JOB_ID}_submitted.pkl" ] || ln -f submitit/job.pkl "submitit/${SLURM_JOB_ID}_submitted.pkl" || exit 1
mkdir -p logs

# The ranks save when they are asked to leave: no signal may end this script before them.
trap '' TERM INT HUP USR1 USR2
# What the submitting shell or its job passed on must not shape the step.
unset SLURM_EXPORT_ENV SLURM_MEM_PER_CPU SLURM_MEM_PER_GPU SLURM_MEM_PER_NODE
# With this status srun reports its own errors, which are no failures of the ranks.
export SLURM_EXIT_ERROR=200
while true; do
srun --kill-on-bad-exit=1 --wait=0 --cpus-per-task=2 --unbuffered --open-mode=append --output="logs/%j.%s.${SLURM_RESTART_COUNT:-0}.rank_%5t.log" --het-group=0,1,2 '/opt/my venv/bin/python' -u -m slurm.job.start_task submitit
code=$?

# A step that did not finish the run: does the run go on, and how?
[ "$code" != 0 ] || break
'/opt/my venv/bin/python' -P -m slurm.job.decide_restart /scratch/me/experiments/tiny-0123abcd "$code" in-place
[ "$?" = 79 ] || break
done
# Later jobs wait for this one to succeed, even if a rank fails after the run has finished.
[ ! -e result.json ] || code=0
exit "$code"
