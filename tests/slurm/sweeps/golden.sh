#!/bin/bash
#SBATCH --job-name=tiny-0123abcd
#SBATCH --chdir=/scratch/me/experiments/sweeps/tiny-0123abcd
#SBATCH --output=%a/logs/%j.batch.log
#SBATCH --open-mode=append
#SBATCH --requeue
#SBATCH --signal=USR2@120
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=2
#SBATCH --gres=gpu:2
#SBATCH --cpus-per-task=4
#SBATCH --array=0-2%2

# Each task works in the folder of its run, like a single job of that run.
cd -P "$SLURM_ARRAY_TASK_ID" || exit 1
# (the lines of slurm.submission.batch.folder_guard, as in single_node.sh)
# Before the first attempt, the shared code is replaced by a copy with hard links.
[ -e code ] || [ ! -L .code.shared ] || mv -T .code.shared code
if [ -L code ]; then
    rm -rf .code.own && cp -rl code/. .code.own &&
        mv -T code .code.shared && mv -T .code.own code && rm -f .code.shared
fi
# submitit looks for its pickle under the array's id and the task's.
pickle="submitit/${SLURM_ARRAY_JOB_ID}_${SLURM_ARRAY_TASK_ID}_submitted.pkl"
[ -e "$pickle" ] || ln -f submitit/job.pkl "$pickle" || exit 1
exec /bin/bash submitit/array.sh
