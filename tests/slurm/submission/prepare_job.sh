#!/bin/bash
#SBATCH --job-name=tiny.0
#SBATCH --chdir=/runs/preparations/tiny
#SBATCH --output=logs/%j.rank_00000.log
#SBATCH --open-mode=append
#SBATCH --requeue
#SBATCH --signal=B:USR2@300
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=1
#SBATCH --gres=tmpdisk:10
#SBATCH --cpus-per-task=6
#SBATCH --mem=64G
#SBATCH --mem-per-cpu=4G
#SBATCH --time=1-12:00:00
#SBATCH --partition=long,short
#SBATCH --account=lab
#SBATCH --qos=high
#SBATCH --constraint=a100|h100
#SBATCH --exclude=node7,node9
#SBATCH --reservation=course
#SBATCH --dependency=afterok:12:13
#SBATCH --mail-user=me@example.org
#SBATCH --mail-type=END,FAIL
#SBATCH --comment="first try"
#SBATCH --licenses=matlab:1
#SBATCH --exclusive
#SBATCH --kill-on-invalid-dep=yes
#SBATCH --spread-job
#SBATCH --nice=100

# (the lines of slurm.submission.batch.folder_guard, as in single_node.sh)

# These tokens belong to the host of the submission, and expire soon.
unset SLURM_JWT SLURM_SACK_SOCKET
module purge
module load cuda/12.4
set +eu
cd /runs/preparations/tiny || exit 1
export OMP_NUM_THREADS=6
export NCCL_DEBUG=INFO
export PYTHONPATH=/runs/preparations/tiny/code${PYTHONPATH:+:$PYTHONPATH}
export PYTHONUNBUFFERED=1
export SUBMITIT_EXECUTOR=slurm
export TORCH_CPP_LOG_LEVEL=${TORCH_CPP_LOG_LEVEL:-ERROR}

# A warning may come before Python handles it.
trap '' USR2
exec '/opt/my venv/bin/python' -P -u -m slurm.job.preparation /runs/preparations/tiny
