#!/bin/bash
#SBATCH --job-name=lightning
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=2
#SBATCH --exclusive
#SBATCH --requeue
#SBATCH --open-mode=append
date +%s.%N >> "$1/launches"
srun "$PEERS_PYTHON" -m torch.distributed.run --standalone --nproc-per-node=2 --max-restarts="${PEERS_RESTARTS:-0}" \
    "$PEERS_CODE/lightning_train.py" "$@"
