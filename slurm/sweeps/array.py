"""ArrayPlan: runs as the tasks of one job array, and its exact batch script. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from slurm.config.resources import Resources
from slurm.submission.batch.batch_script import JobPlan, both_dependencies, directives
from slurm.submission.batch.folder_guard import LINES
from slurm.submission.batch.job_options import components
from toolkit.errors import UserError

#: Name of the batch script of a task, in the folder `submitit` of its run.
TASK_SCRIPT = "array.sh"


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayPlan:
    """The submission of `stk sweep`; str(plan) is the batch script, byte for byte.

    A task only changes to its run's folder and executes the batch script that the run would have as a single
    job.

    plans          one for each task; all have the same resources
    folder         working directory of the array, with a link to each run, named by the number of its task
    max_parallel   tasks that run at the same time; None for all
    after          arrays of the same sweep that must have ended before a task starts
    """

    plans: tuple[JobPlan, ...]
    folder: Path
    max_parallel: int | None = None
    after: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The job's name, which is unique among arrays."""
        return self.folder.name

    def __str__(self) -> str:
        return "\n".join(
            [
                "#!/bin/bash",
                *directives(self._options()),
                "",
                "# Each task works in the folder of its run, like a single job of that run.",
                'cd -P "$SLURM_ARRAY_TASK_ID" || exit 1',
                *LINES,
                "# Before the first attempt, the shared code is replaced by a copy with hard links.",
                "[ -e code ] || [ ! -L .code.shared ] || mv -T .code.shared code",
                "if [ -L code ]; then",
                "    rm -rf .code.own && cp -rl code/. .code.own &&",
                "        mv -T code .code.shared && mv -T .code.own code && rm -f .code.shared",
                "fi",
                "# submitit looks for its pickle under the array's id and the task's.",
                'pickle="submitit/${SLURM_ARRAY_JOB_ID}_${SLURM_ARRAY_TASK_ID}_submitted.pkl"',
                '[ -e "$pickle" ] || ln -f submitit/job.pkl "$pickle" || exit 1',
                f"exec /bin/bash submitit/{TASK_SCRIPT}",
                "",
            ]
        )

    def _options(self) -> dict[str, object]:
        first = self.plans[0]
        check_equal_hosts(first.resources)
        own = first.options()
        # %a is the link to the folder of each task's run.
        options = {**own, "job-name": self.name, "chdir": self.folder, "output": f"%a/{own['output']}"}
        if self.after:
            after = f"afterany:{':'.join(self.after)}"
            need = "an earlier array must also end"
            options["dependency"] = both_dependencies(options.get("dependency"), after, need)
        throttle = "" if self.max_parallel is None else f"%{self.max_parallel}"
        return {**options, "array": f"0-{len(self.plans) - 1}{throttle}"}


def check_equal_hosts(resources: Resources) -> None:
    """Raise UserError for hosts that differ."""
    if len(components(resources)) > 1:
        raise UserError(
            "resources.groups and resources.hosts make a heterogeneous job, which cannot be an array: "
            "submit the runs one by one, with stk submit"
        )
