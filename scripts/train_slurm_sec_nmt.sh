#!/usr/bin/env bash
# Correct texts, sequence to sequence.
#
#   APPROACH=transformer scripts/train_slurm_sec_nmt.sh           misspelt words, from tokens
#   APPROACH=transformer_with_tokenization_repair scripts/train_slurm_sec_nmt.sh
#                                                                 wrong spaces too, from characters
#   APPROACH=transformer SMALL=1 scripts/train_slurm_sec_nmt.sh resources.partition=cpu
#
# toolkit/workloads/spelling/docs/study.md explains SMALL and STK_…. On a login node it is a job, else local.
set -euo pipefail
here=$(dirname "${BASH_SOURCE[0]}")
source "$here/spelling_study"

approach transformer transformer_with_tokenization_repair
case $APPROACH in
transformer)
    config=sec_nmt_transformer
    epochs 10 NODES=3 LOGICAL_RANKS=12 BATCH_MAX_LENGTH=32768 NUM_ENCODER_LAYERS=6 NUM_DECODER_LAYERS=6 \
        EXPERIMENT_NAME=transformer_sec_nmt
    ;;
transformer_with_tokenization_repair)
    config=sec_with_tokenization_repair_nmt_transformer
    epochs 4 NODES=4 LOGICAL_RANKS=16 BATCH_MAX_LENGTH=32768 NUM_ENCODER_LAYERS=12 NUM_DECODER_LAYERS=6 \
        EXPERIMENT_NAME=transformer_sec_with_tokenization_repair_nmt
    ;;
esac
source "$here/study"

prepare_texts
run "configs/spelling/$config.yaml" "$@"
finish sec_nmt
