#!/usr/bin/env bash
# Score runs of the spelling study and baselines on its benchmarks; write tables in Markdown and LaTeX.
#
#   scripts/evaluate_slurm_spelling.sh RUN RUN …                  a run's folder or id
#   SMALL=1 SBATCH_PARTITION=cpu scripts/evaluate_slurm_spelling.sh RUN RUN …
#
# On a login node it runs as a job with STK_GRES, STK_TIME and sbatch's own variables, else here.
# STUDY_AFTER: jobs that it waits for, separated by colons. STK_BENCHMARKS: other benchmarks.
# A failed run is named, and the others are still scored; the exit code is then 4.
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
# As in `stk submit`: sbatch accepts a job above its partition's limits, and it would be pending for ever.
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
