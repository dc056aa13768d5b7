#!/usr/bin/env bash
# Find the misspelt words of texts, with and without the features of words: two runs, one job array.
#
#   APPROACH=gnn scripts/train_slurm_sed_words.sh                    a graph network over tokens and words
#   APPROACH=transformer scripts/train_slurm_sed_words.sh            a transformer over tokens
#   APPROACH=gnn SMALL=1 scripts/train_slurm_sed_words.sh resources.partition=cpu
#
# toolkit/workloads/spelling/docs/study.md explains SMALL and STK_…. On a login node as jobs, else local.
set -euo pipefail
here=$(dirname "${BASH_SOURCE[0]}")
source "$here/spelling_study"

approach gnn transformer
case $APPROACH in
gnn)
    config=sed_words
    epochs 20 NODES=2 BATCH_MAX_LENGTH=98304 NUM_LAYERS=6
    ;;
transformer)
    config=sed_words_transformer
    epochs 20 NODES=2 BATCH_MAX_LENGTH=98304 NUM_ENCODER_LAYERS=6
    ;;
esac
source "$here/study"

prepare_texts
ablation model.word_features=true,false "configs/spelling/$config.yaml" \
    "name=${STK_EXPERIMENT_NAME:-sed_words_$APPROACH}_features_\${model.word_features}" "$@"
finish sed_words
