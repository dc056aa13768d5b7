#!/usr/bin/env bash
# Train one experiment: as a batch script, or here.
#
#   STK_CONFIG=configs/quickstart.yaml sbatch --nodes=4 --ntasks-per-node=2 --gres=gpu:2 scripts/train.sh
#   STK_CONFIG=configs/quickstart.yaml scripts/train.sh
#
# STK_CONFIG       experiment file; further keys as arguments: scripts/train.sh train.epochs=3
# STK_RESUME       instead: a run to resume (its folder, its id, or the beginning of the id)
# STK_FORCE_LOCAL  1, true, yes or on: train here although this is a job
#
# The number of processes is that of the Slurm job: nodes times tasks per node.
#SBATCH --job-name=stk-train
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --signal=USR2@120
set -euo pipefail

die() {
    echo "error: $1" >&2
    exit 2
}

[ -n "${STK_CONFIG:-}" ] || [ -n "${STK_RESUME:-}" ] || die "set STK_CONFIG (an experiment file) or STK_RESUME (a run)"
[ -z "${STK_CONFIG:-}" ] || [ -z "${STK_RESUME:-}" ] || die "both STK_CONFIG and STK_RESUME are set: choose one"
what="${STK_CONFIG:-${STK_RESUME:-}}"

case "${STK_FORCE_LOCAL:-}" in
    1 | [Tt][Rr][Uu][Ee] | [Yy][Ee][Ss] | [Oo][Nn]) is_local=1 ;;
    "" | 0 | [Ff][Aa][Ll][Ss][Ee] | [Nn][Oo] | [Oo][Ff][Ff]) is_local= ;;
    *) die "STK_FORCE_LOCAL is '$STK_FORCE_LOCAL': use 1, true, yes, on, or 0, false, no, off" ;;
esac

if ! command -v stk >/dev/null; then
    # Slurm runs a copy of this script from its spool folder: only SLURM_SUBMIT_DIR leads to the repository.
    for root in "$(dirname "$(readlink -f "$0")")/.." "${SLURM_SUBMIT_DIR:-.}"; do
        [ ! -x "$root/.venv/bin/stk" ] || PATH="$(cd "$root/.venv/bin" && pwd):$PATH"
    done
    command -v stk >/dev/null || die "the command stk is not on PATH: activate the virtual environment first"
fi

# Slurm sets ENVIRONMENT in batch scripts alone: not in the shell of salloc or srun --pty.
if [ -z "$is_local" ] && [ -n "${SLURM_JOB_ID:-}" ] && [ "${ENVIRONMENT:-}" = BATCH ]; then
    # The ranks save on a signal; this script must not end before them.
    trap '' TERM INT HUP USR1 USR2
    # Variables of the submitting shell or job must not change the step: sbatch --export, salloc --mem.
    unset SLURM_EXPORT_ENV SLURM_MEM_PER_CPU SLURM_MEM_PER_GPU SLURM_MEM_PER_NODE
    # The Python of `stk`: its first line names it, as after `pip install --user`, or it is in the same folder.
    read -r python <"$(command -v stk)" || true
    python=${python#\#!}
    python=${python%% *}
    case "${python##*/}" in
        python*) ;;
        *) python=$(dirname "$(command -v stk)")/python ;;
    esac
    code=0
    srun --kill-on-bad-exit=1 --wait=0 --cpus-per-task="${SLURM_CPUS_PER_TASK:-1}" stk run "$what" "$@" || code=$?
    # The step did not finish the run: decide whether and how to restart.
    [ "$code" = 0 ] || "$python" -P -m slurm.job.decide_restart "$what" "$code" "$@" || true
    exit "$code"
fi
exec stk run "$what" "$@"
