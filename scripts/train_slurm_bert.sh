#!/usr/bin/env bash
# Reproduce the study of a pretrained encoder: topics, mails and movie reviews.
# On a login node each run becomes a job; without Slurm they train here, one after the other.
#
#   scripts/train_slurm_bert.sh                                   as configs/bert_*.yaml say
#   STK_NODES=2 STK_TASKS_PER_NODE=4 scripts/train_slurm_bert.sh resources.gres=gpu:4
#
# Arguments are keys of the experiment, for all runs alike. Runs that have finished or are live are not repeated.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/setup"

for data in minilm wiki_topics spam_mails movie_reviews; do
    python "scripts/get_$data"
done
train=(stk run)
if scontrol ping >/dev/null 2>&1; then
    train=(stk submit)
fi
failed=0
for study in topics spam movies; do
    # One run that is refused, because it is live for example, does not keep the others from starting.
    "${train[@]}" "configs/bert_$study.yaml" "$@" || failed=$?
done
stk status
echo "When all have finished: stk report RUN RUN … --output bert.html sets them side by side."
exit "$failed"
