#!/usr/bin/env bash
# Repair white space and find misspelt words, or also correct them, on top of a model for white space.
#
#   export STK_REPAIR_RUN=experiments/transformer_encoder_only-…  a run of train_slurm_tokenization_repair.sh
#   APPROACH=plus_sed scripts/train_slurm_tokenization_repair_plus.sh
#   APPROACH=plus_sed_plus_sec scripts/train_slurm_tokenization_repair_plus.sh
#
# toolkit/workloads/spelling/docs/study.md explains SMALL and STK_…. On a login node it is a job, else local.
set -euo pipefail
here=$(dirname "${BASH_SOURCE[0]}")
source "$here/spelling_study"

approach plus_sed plus_sed_plus_sec
[[ -n ${STK_REPAIR_RUN:-} ]] || fail "set STK_REPAIR_RUN to the folder of a run of train_slurm_tokenization_repair.sh"
case $APPROACH in
plus_sed) epochs 5 NODES=3 LOGICAL_RANKS=12 BATCH_MAX_LENGTH=98304 NUM_WORD_LAYERS=6 ;;
plus_sed_plus_sec)
    epochs 4 NODES=5 LOGICAL_RANKS=20 BATCH_MAX_LENGTH=32768 NUM_WORD_LAYERS=6 NUM_SEC_LAYERS=6
    ;;
esac
source "$here/study"

prepare_texts
run "configs/spelling/tokenization_repair_$APPROACH.yaml" "$@"
finish tokenization_repair_plus
