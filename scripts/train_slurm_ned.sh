#!/usr/bin/env bash
# Reproduce the study of entity disambiguation: the senses of words in WordNet's usage examples, with the
# bi-encoder and with the model that uses types, relations and the other mentions; and the sample of Bootleg,
# if it is in data/bootleg_sample (see configs/ned_sample.yaml).
# On a login node each run becomes a job; without Slurm the runs train here, one after the other.
#
#   scripts/train_slurm_ned.sh                                   as configs/ned_*.yaml say
#   STK_NODES=2 STK_TASKS_PER_NODE=4 scripts/train_slurm_ned.sh resources.gres=gpu:4
#
# Arguments are keys of all experiments. Runs that have finished or are live are not repeated.
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
