#!/usr/bin/env bash
# Reproduce the whole spelling study: prepare, train, finetune, evaluate, tables. docs/spelling-study.md tells of it.
#
#   scripts/reproduce_spelling.sh resources.partition=gpu
#   SMALL=1 scripts/reproduce_spelling.sh                         small models, on CPUs
#
# On a login node all jobs are submitted at once and wait for each other, else all is done here, one after the
# other. Arguments are keys of all runs. What has finished is not repeated.
set -euo pipefail
here=$(dirname "${BASH_SOURCE[0]}")
source "$here/spelling_study"
source "$here/study"

experiments=$(realpath -m "${STK_EXPERIMENT_DIR:-experiments}")
export STUDY_RUNS=$experiments/spelling_study.runs
keys=("$@")
# A job that others wait for must keep its id until its run has finished.
! on_slurm || keys+=(resources.requeue=same_job)

# train SCRIPT APPROACH [STK_NAME=VALUE …]
train() {
    echo "---- $1 $2"
    env APPROACH="$2" "${@:3}" "scripts/train_slurm_$1.sh" "${keys[@]}"
}

# run_of NAME: the folder of the run that was called so.
run_of() { echo "$experiments/$(grep -xE "$1-[0-9a-f]{8}" "$STUDY_RUNS")"; }

# jobs_of RUN …: the jobs of those that have not finished, with colons between them; nothing without Slurm.
jobs_of() {
    ! on_slurm || stk status --json "$@" | python -c '
import json, sys
print(*(row["job_id"] for row in json.load(sys.stdin) if row["state"] != "finished"), sep=":")'
}

mkdir -p "$experiments"
: >"$STUDY_RUNS"
for task in sed_words sed_sequence; do
    for approach in gnn transformer; do train "$task" "$approach"; done
done
train sec_nmt transformer
train sec_nmt transformer_with_tokenization_repair
train sec_words_nmt transformer
train tokenization_repair encoder_only

repair=$(run_of transformer_encoder_only)
for approach in plus_sed plus_sed_plus_sec; do
    train tokenization_repair_plus "$approach" "STK_REPAIR_RUN=$repair" "STUDY_AFTER=$(jobs_of "$repair")"
done

# finetune APPROACH NAME: on from the run that was called so.
finetune() {
    local source
    source=$(run_of "$2")
    train finetune "$1" "STK_START_FROM_CHECKPOINT=$source" "STUDY_AFTER=$(jobs_of "$source")"
}
for task in sed_words sed_sequence; do
    finetune "$task" "${task}_gnn_features_True"
    finetune "${task}_transformer" "${task}_transformer_features_True"
done
finetune sec_nmt_transformer transformer_sec_nmt
finetune sec_words_nmt_transformer transformer_sec_words_nmt

echo "---- evaluate"
mapfile -t runs < <(sed "s|^|$experiments/|" "$STUDY_RUNS")
STUDY_AFTER=$(jobs_of "${runs[@]}") scripts/evaluate_slurm_spelling.sh "${runs[@]}"
