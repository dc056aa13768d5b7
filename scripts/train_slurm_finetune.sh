#!/usr/bin/env bash
# Finetune a trained model on errors that people make: listed misspellings, no edits of letters.
#
#   export STK_START_FROM_CHECKPOINT=experiments/transformer_sec_nmt-…   a run of the script of that task
#   APPROACH=sec_nmt_transformer scripts/train_slurm_finetune.sh
#
# APPROACH: sed_words, sed_words_transformer, sed_sequence, sed_sequence_transformer, sec_nmt_transformer or
# sec_words_nmt_transformer; layers and features as in the run that it starts from.
# toolkit/workloads/spelling/docs/study.md explains SMALL and STK_…. On a login node it is a job, else local.
set -euo pipefail
here=$(dirname "${BASH_SOURCE[0]}")
source "$here/spelling_study"

approach sed_words sed_words_transformer sed_sequence sed_sequence_transformer sec_nmt_transformer \
    sec_words_nmt_transformer
[[ -n ${STK_START_FROM_CHECKPOINT:-} ]] || fail "set STK_START_FROM_CHECKPOINT to the folder of a trained run"
case $APPROACH in
sed_*) epochs 20 NODES=2 BATCH_MAX_LENGTH=98304 ;;
sec_*) epochs 5 NODES=2 BATCH_MAX_LENGTH=32768 EVAL_PER_EPOCH=2 ;;
esac
export STK_EXPERIMENT_NAME=${STK_EXPERIMENT_NAME:-finetune_$APPROACH}
source "$here/study"

prepare_texts
run "configs/spelling/finetune_$APPROACH.yaml" "$@"
finish finetune
