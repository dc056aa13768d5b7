#!/usr/bin/env bash
# Reproduce the study of a pretrained encoder: topics, mails and movie reviews.
# On a login node each run becomes a job; without Slurm the runs train here, one after the other.
#
#   scripts/train_slurm_bert.sh                                   as configs/bert_*.yaml say
#   STK_NODES=2 STK_TASKS_PER_NODE=4 scripts/train_slurm_bert.sh resources.gres=gpu:4
#
# Arguments are keys of all experiments. Runs that have finished or are live are not repeated.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/study"

for data in minilm wiki_topics spam_mails movie_reviews; do
    python "scripts/get_$data"
done
for study in topics spam movies; do
    start "configs/bert_$study.yaml" "$@"
done
finish bert
