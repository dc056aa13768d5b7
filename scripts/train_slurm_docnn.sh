#!/usr/bin/env bash
# Reproduce the DocNN study: on the movie reviews with PyText's tokens and ours, three seeds each; on SST-2's
# sentences one run, if they are in data/sst2 (see configs/sst2.yaml).
# On a login node each run becomes a job; without Slurm the runs train here, one after the other.
#
#   scripts/train_slurm_docnn.sh                                   as configs/docnn.yaml says
#   STK_NODES=2 STK_TASKS_PER_NODE=4 scripts/train_slurm_docnn.sh resources.gres=gpu:4
#
# Arguments are keys of all experiments. Runs that have finished or are live are not repeated.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/study"

python scripts/get_movie_reviews
for tokenizer in whitespace words; do
    for seed in 0 1 2; do
        start configs/docnn.yaml "name=docnn-$tokenizer" "data.tokenizer=$tokenizer" "seed=$seed" "$@"
    done
done
if [[ -e ${STK_DATA_DIR:-data}/sst2/train.tsv ]]; then
    start configs/sst2.yaml "$@"
fi
finish docnn
