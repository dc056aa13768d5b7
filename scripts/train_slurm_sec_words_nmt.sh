#!/usr/bin/env bash
# Correct all words of a text in parallel, each independently.
#
#   APPROACH=transformer scripts/train_slurm_sec_words_nmt.sh
#   APPROACH=transformer SMALL=1 scripts/train_slurm_sec_words_nmt.sh resources.partition=cpu
#
# toolkit/workloads/spelling/docs/study.md explains SMALL and STK_…. On a login node it is a job, else local.
set -euo pipefail
here=$(dirname "${BASH_SOURCE[0]}")
source "$here/spelling_study"

approach transformer
epochs 10 NODES=4 LOGICAL_RANKS=16 BATCH_MAX_LENGTH=32768 NUM_ENCODER_LAYERS=6 NUM_DECODER_LAYERS=6 \
    EXPERIMENT_NAME=transformer_sec_words_nmt
source "$here/study"

prepare_texts
run configs/spelling/sec_words_nmt_transformer.yaml "$@"
finish sec_words_nmt
