#!/usr/bin/env bash
# Reproduce the study of entity disambiguation: the senses of words in WordNet's usage examples, with the
# bi-encoder and with the model that looks at types, relations and the other mentions; and Bootleg's own sample,
# where somebody has put it into data/bootleg_sample (configs/ned_sample.yaml says how).
# On a login node each run becomes a job; without Slurm they train here, one after the other.
#
#   scripts/train_slurm_ned.sh                                   as configs/ned_*.yaml say
#   STK_NODES=2 STK_TASKS_PER_NODE=4 scripts/train_slurm_ned.sh resources.gres=gpu:4
#
# Arguments are keys of the experiment, for all runs alike. Runs that have finished or are live are not repeated.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/study"

for data in minilm wordnet; do
    python "scripts/get_$data"
done
start configs/ned_wordnet.yaml "$@"
start configs/ned_co_mention.yaml "$@"
sample=${STK_DATA_DIR:-data}/bootleg_sample
if [[ -e $sample/raw_profile.jsonl ]]; then
    [[ -e $sample/entity_db ]] || stk entities import "$sample/raw_profile.jsonl" "$sample/entity_db" --pids keep
    start configs/ned_sample.yaml "$@"
fi
finish ned
