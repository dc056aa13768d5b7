#!/usr/bin/env bash
# Score runs of the spelling study on its benchmarks, beside the baselines: tables in Markdown and LaTeX.
#
#   scripts/evaluate_slurm_spelling.sh RUN RUN …                  a run's folder or id
#   SMALL=1 SBATCH_PARTITION=cpu scripts/evaluate_slurm_spelling.sh RUN RUN …
#
# On a login node a job, for which STK_GRES, STK_TIME and sbatch's own variables count, else here.
# STUDY_AFTER: jobs that it waits for, with colons between them. STK_BENCHMARKS: other benchmarks.
# A run that failed is named and keeps no other from being scored; the exit code is 4 then.
set -euo pipefail
here=$(dirname "${BASH_SOURCE[0]}")
source "$here/spelling_study"
(($#)) || fail "give runs: their folders, or their ids"
settings GRES=gpu:1 TIME=4:00:00
source "$here/study"

prepare_texts
spelling=${STK_DATA_DIR:-data}/spelling
scores=$(realpath -m "${STK_EXPERIMENT_DIR:-experiments}")/spelling_scores
mkdir -p "$(dirname "$scores")"
command=(stk evaluate "$@" --benchmark "${STK_BENCHMARKS:-$spelling/benchmarks}" --baselines
    --dictionary "$spelling/dictionaries/merged_train.txt" --markdown "$scores.md" --latex "$scores.tex")
if ! on_slurm; then
    exec "${command[@]}"
fi
[[ $STK_GRES == null ]] || gres=$STK_GRES
# As `stk submit` does: sbatch takes a job that is above its partition's limits, and lets it wait for ever.
python -c '
import sys
from slurm.config.resources import Resources
from slurm.submission.checks.preflight import preflight
from toolkit.errors import StkError
names = ("time", "gres", "partition", "account", "qos")
asked = {name: value for name, value in zip(names, sys.argv[1:]) if value}
try:
    preflight(Resources(cpus_per_task=1, **asked))
except StkError as error:
    print(f"error: {error}", file=sys.stderr)
    sys.exit(error.exit_code)
' "$STK_TIME" "${gres:-}" "${SBATCH_PARTITION:-}" "${SBATCH_ACCOUNT:-}" "${SBATCH_QOS:-}"
job=$(sbatch --parsable --job-name=spelling-evaluate --output="$scores.log" --time="$STK_TIME" --ntasks=1 \
    ${gres:+"--gres=$gres"} ${STUDY_AFTER:+"--dependency=afterany:$STUDY_AFTER"} \
    --wrap="cd $(printf %q "$PWD") && $(printf '%q ' "${command[@]}")")
echo "job     $job, which scores $# runs on the benchmarks
log     $scores.log
tables  $scores.md $scores.tex"
