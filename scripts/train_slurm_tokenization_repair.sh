#!/usr/bin/env bash
# Repair the white space of misspelt texts.
#
#   APPROACH=encoder_only scripts/train_slurm_tokenization_repair.sh
#   APPROACH=encoder_only SMALL=1 scripts/train_slurm_tokenization_repair.sh resources.partition=cpu
#
# toolkit/workloads/spelling/docs/study.md explains SMALL and STK_…. On a login node it is a job, else local.
set -euo pipefail
here=$(dirname "${BASH_SOURCE[0]}")
source "$here/spelling_study"

approach encoder_only
epochs 5 NODES=2 BATCH_MAX_LENGTH=98304 NUM_ENCODER_LAYERS=6 EXPERIMENT_NAME=transformer_encoder_only
source "$here/study"

prepare_texts
run configs/spelling/tokenization_repair.yaml "$@"
finish tokenization_repair
