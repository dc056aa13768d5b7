#!/bin/bash
#SBATCH --job-name=lightning
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=2
#SBATCH --cpus-per-task=1
#SBATCH --exclusive
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --signal=SIGUSR1@30
date +%s.%N >> "$1/launches"
srun "$PEERS_PYTHON" "$PEERS_CODE/lightning_train.py" "$1"
