#!/bin/bash
#SBATCH --job-name=tiny.0
#SBATCH --chdir=/runs/preparations/tiny
#SBATCH --output=logs/%j.rank_00000.log
#SBATCH --open-mode=append
#SBATCH --requeue
#SBATCH --signal=B:USR2@300
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=1
#SBATCH --gres=tmpdisk:10
#SBATCH --cpus-per-task=6
#SBATCH --mem=64G
#SBATCH --mem-per-cpu=4G
#SBATCH --time=1-12:00:00
#SBATCH --partition=long,short
#SBATCH --account=lab
#SBATCH --qos=high
#SBATCH --constraint=a100|h100
#SBATCH --exclude=node7,node9
#SBATCH --reservation=course
#SBATCH --dependency=afterok:12:13
#SBATCH --mail-user=me@example.org
#SBATCH --mail-type=END,FAIL
#SBATCH --comment="first try"
#SBATCH --licenses=matlab:1
#SBATCH --exclusive
#SBATCH --kill-on-invalid-dep=yes
#SBATCH --spread-job
#SBATCH --nice=100

# Refuse to execute anything here that another user owns or may write.
refuse_others() {
    local each found group=(-perm -g+w) named here; here=$(pwd -P)
    IFS=: read -ra named <<<"${STK_TRUSTED_FOLDERS:-}"
    for each in "${named[@]}"; do
        [ "$each" != '*' ] && [[ $PWD/ != "${each%/}"/* && $here/ != "${each%/}"/* ]] || return 0
    done
    [ "$(id -gn)" != "$(id -un)" ] || group+=(! -gid "$(id -g)")
    local others=(! -uid "$(id -u)" ! -uid 0 -o -perm -o+w -o "${group[@]}")
    local tell=(\( "${others[@]}" \) -ls -quit)
    found=$(find -L . config.yaml job.yaml -maxdepth 0 "${tell[@]}" 2>/dev/null
        find -L code submitit "${tell[@]}" -o -type d ! -perm /011 -prune 2>/dev/null)
    [ -z "$found" ] && return
    echo "error: another user owns or may write what this job would execute in $PWD:" "$found" >&2
    echo "If you trust it, set STK_TRUSTED_FOLDERS=$PWD" >&2
    exit 2
}
refuse_others

# These tokens belong to the host of the submission, and expire soon.
unset SLURM_JWT SLURM_SACK_SOCKET
module purge
module load cuda/12.4
set +eu
cd /runs/preparations/tiny || exit 1
export OMP_NUM_THREADS=6
export NCCL_DEBUG=INFO
export PYTHONPATH=/runs/preparations/tiny/code${PYTHONPATH:+:$PYTHONPATH}
export PYTHONUNBUFFERED=1
export SUBMITIT_EXECUTOR=slurm
export TORCH_CPP_LOG_LEVEL=${TORCH_CPP_LOG_LEVEL:-ERROR}

# A warning may come before Python handles it.
trap '' USR2
exec '/opt/my venv/bin/python' -P -u -m slurm.job.preparation /runs/preparations/tiny
