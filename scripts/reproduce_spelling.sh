#!/usr/bin/env bash
# Reproduce the spelling study: prepare, train, finetune, evaluate (toolkit/workloads/spelling/docs/study.md).
#
#   scripts/reproduce_spelling.sh resources.partition=gpu
#   SMALL=1 scripts/reproduce_spelling.sh                         small models, on CPUs
#   STUDY_STEPS=1 scripts/reproduce_spelling.sh                   only print the number of steps of each run
#
# On a login node all jobs are submitted at once and wait for each other, else the runs train here, one after
# the other. Arguments are keys of all runs. Finished runs are not repeated.
set -euo pipefail
here=$(dirname "${BASH_SOURCE[0]}")
source "$here/spelling_study"
source "$here/study"

experiments=$(realpath -m "${STK_EXPERIMENT_DIR:-experiments}")
export STUDY_RUNS=$experiments/spelling_study.runs
failed=0
keys=("$@")
# A job must keep its id until its run has finished, because other jobs wait for this id.
! on_slurm || keys+=(resources.requeue=same_job)

# train SCRIPT APPROACH [STK_NAME=VALUE …]: train a run; if it fails, the others are still trained and scored.
train() {
    local code=0
    echo "---- $1 $2"
    env APPROACH="$2" "${@:3}" "scripts/train_slurm_$1.sh" "${keys[@]}" || code=$?
    ((code != 130)) || exit 130
    ((code == 0)) || failed=$code
}

# run_of NAME: print the folder of the run with this name; fail if there is none, as after a refusal.
run_of() {
    local run
    run=$experiments/$(grep -xE "$1-[0-9a-f]{8}" "$STUDY_RUNS" || echo "$1")
    if [[ ! -d $run ]]; then
        echo "skipped: runs that begin with the weights of $1, which this script has not started" >&2
        return 1
    fi
    echo "$run"
}

# jobs_of RUN …: print the jobs of unfinished runs, separated by colons; nothing without Slurm.
jobs_of() {
    ! on_slurm || stk status --json "$@" | python -c '
import json, sys
rows = json.load(sys.stdin)
print(*(row["job_id"] for row in rows if row["state"] != "finished" and row["job_id"]), sep=":")'
}

# Print the steps of all runs before the first one starts; "-" stands for runs that do not exist yet.
scripts/spelling_steps --header
while read -r script approaches; do
    for approach in $approaches; do
        env STUDY_STEPS=1 APPROACH="$approach" STK_REPAIR_RUN=- STK_START_FROM_CHECKPOINT=- STUDY_RUNS= \
            "scripts/train_slurm_$script.sh" "${keys[@]}"
    done
done <<'END'
sed_words gnn transformer
sed_sequence gnn transformer
sec_nmt transformer transformer_with_tokenization_repair
sec_words_nmt transformer
tokenization_repair encoder_only
tokenization_repair_plus plus_sed plus_sed_plus_sec
finetune sed_words sed_words_transformer sed_sequence sed_sequence_transformer
finetune sec_nmt_transformer sec_words_nmt_transformer
END
# With STUDY_STEPS, nothing else is done.
[[ -z ${STUDY_STEPS:-} ]] || exit 0

mkdir -p "$experiments"
: >"$STUDY_RUNS"
for task in sed_words sed_sequence; do
    for approach in gnn transformer; do train "$task" "$approach"; done
done
train sec_nmt transformer
train sec_nmt transformer_with_tokenization_repair
train sec_words_nmt transformer
train tokenization_repair encoder_only

if repair=$(run_of transformer_encoder_only); then
    for approach in plus_sed plus_sed_plus_sec; do
        train tokenization_repair_plus "$approach" "STK_REPAIR_RUN=$repair" "STUDY_AFTER=$(jobs_of "$repair")"
    done
else
    ((failed)) || failed=2
fi

# finetune APPROACH NAME: finetune the run with this name.
finetune() {
    local source
    if ! source=$(run_of "$2"); then
        ((failed)) || failed=2
        return
    fi
    train finetune "$1" "STK_START_FROM_CHECKPOINT=$source" "STUDY_AFTER=$(jobs_of "$source")"
}
for task in sed_words sed_sequence; do
    finetune "$task" "${task}_gnn_features_True"
    finetune "${task}_transformer" "${task}_transformer_features_True"
done
finetune sec_nmt_transformer transformer_sec_nmt
finetune sec_words_nmt_transformer transformer_sec_words_nmt

echo "---- evaluate"
runs=()
while read -r run; do
    [[ ! -d $experiments/$run ]] || runs+=("$experiments/$run")
done <"$STUDY_RUNS"
if ((!${#runs[@]})); then
    echo "error: no run of the study is in $experiments, so there is nothing to score" >&2
    exit $((failed ? failed : 2))
fi
STUDY_AFTER=$(jobs_of "${runs[@]}") scripts/evaluate_slurm_spelling.sh "${runs[@]}" || failed=$?
exit "$failed"
