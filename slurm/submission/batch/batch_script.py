"""JobPlan: an experiment, its run, and the exact batch script. Pure."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass

from slurm.client.stop_reason import WARNING_SIGNAL
from slurm.config.resources import Resources
from slurm.config.world_size import world_size
from slurm.submission.batch.folder_guard import LINES
from slurm.submission.batch.job_options import Component, components, signal_lead_s
from slurm.submission.batch.quoting import directive, export
from toolkit.config import to_plain
from toolkit.config.identity import identity
from toolkit.config.schema import Experiment
from toolkit.errors import UserError
from toolkit.exit_codes import ExitCode
from toolkit.run.kept_code.module_names import module_in
from toolkit.run.run_dir import RunDir

#: Characters of folders in which a batch script fails to start, or starts elsewhere (measured, 22.05).
_NOT_IN_FOLDERS = {
    "%": "Slurm expands it as a pattern",
    "\\": "Slurm drops it",
    "\n": "sbatch reads its options line by line",
    ":": "it separates folders in PYTHONPATH",
}

#: Run by the batch script after a step that did not finish the run, with the run's own code.
DECIDE_RESTART = "slurm.job.decide_restart"
#: The argument which tells it that the script can start the step again.
IN_PLACE = "in-place"
#: srun's exit status for its own errors; toolkit.run.attempts.crash_record takes it for a failed launch.
_SRUN_FAILED = 200
#: The module of each task of the step.
_START_TASK = "slurm.job.start_task"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPlan:
    """The plan of `stk submit`; str(plan) is the batch script, byte for byte.

    number is the number of earlier submissions: it makes the job's name unique, so that a job without a
    recorded id is found by name. after is the job that this one continues, however it ends; dependencies of
    the resources are already met then. awaits is a job that must succeed, otherwise Slurm removes this job
    from the queue.
    """

    experiment: Experiment
    run: RunDir
    number: int = 0
    after: str | None = None
    awaits: str | None = None
    python: str = sys.executable

    @property
    def resources(self) -> Resources:
        own: Resources = self.experiment.resources
        return own

    @property
    def world_size(self) -> int:
        return world_size(self.resources)

    @property
    def job_name(self) -> str:
        return f"{self.run.run_id}.{self.number}"

    def __str__(self) -> str:
        _check_folder(self.run)
        _check_python(self.python)
        parts = components(self.resources)
        return "\n".join(
            [
                "#!/bin/bash",
                *directives(self.options()),
                *(line for part in parts[1:] for line in ["#SBATCH hetjob", *directives(part.options)]),
                "",
                *LINES,
                "",
                *self._environment(),
                "",
                *self._launch(parts),
                "",
            ]
        )

    def options(self) -> dict[str, object]:
        """Return the options of sbatch for the job, or for the first component of a heterogeneous job."""
        # Slurm must requeue the job after a preemption or the loss of a host, and must keep the output of
        # the first start.
        fixed = {
            "job-name": self.job_name,
            "chdir": self.run.path,
            "output": "logs/%j.batch.log",
            "open-mode": "append",
            "requeue": True,
            "signal": f"{WARNING_SIGNAL}@{signal_lead_s(self.resources)}",
        }
        given = components(self.resources)[0].options
        if self.after:
            # They were only for the first job; this job continues the run.
            given = {name: value for name, value in given.items() if name not in ("begin", "hold")}
        return {**fixed, **given, **self._dependencies(given.get("dependency"))}

    def _dependencies(self, given: object) -> dict[str, object]:
        """Return the dependencies of the job, besides those of the resources."""
        if self.after:
            return {"dependency": f"afterany:{self.after}"}
        if not self.awaits:
            return {}
        every = both_dependencies(given, f"afterok:{self.awaits}", "the previous run must also finish")
        # Without this option, a job that can never start would stay in the queue for ever.
        return {"dependency": every, "kill-on-invalid-dep": "yes"}

    def _environment(self) -> list[str]:
        setup = self.resources.setup
        return [
            "# These tokens belong to the host of the submission, and expire soon.",
            "unset SLURM_JWT SLURM_SACK_SOCKET",
            *setup,
            # The lines above may change the options of the shell and the folder.
            *(["set +eu", f"cd {shlex.quote(str(self.run.path))} || exit 1"] if setup else []),
            *(export(name, value) for name, value in self.resources.environment.items()),
            f"export PYTHONPATH={shlex.quote(str(self.run.code))}${{PYTHONPATH:+:$PYTHONPATH}}",
            "export PYTHONUNBUFFERED=1",
            "export SUBMITIT_EXECUTOR=slurm",
            # torch warns on each connection if a host cannot resolve the name of an address.
            "export TORCH_CPP_LOG_LEVEL=${TORCH_CPP_LOG_LEVEL:-ERROR}",
        ]

    def _launch(self, parts: tuple[Component, ...]) -> list[str]:
        pickle = '"submitit/${SLURM_JOB_ID}_submitted.pkl"'
        return [
            # The submitter may have died before naming the pickle after the job.
            # -f, because the submitter may create this link at the same time.
            f"[ -e {pickle} ] || ln -f submitit/job.pkl {pickle} || exit 1",
            "mkdir -p logs",
            "",
            # Ignored, not trapped: bash handles a trapped signal only after the running command, and a
            # `wait` for a background command returns early, even for a signal that came before it.
            # srun handles its signals even if they are ignored, and the ranks are not its children.
            "# The ranks save when they are asked to leave: no signal may end this script before them.",
            "trap '' TERM INT HUP USR1 USR2",
            "# What the submitting shell or its job passed on must not shape the step.",
            "unset SLURM_EXPORT_ENV SLURM_MEM_PER_CPU SLURM_MEM_PER_GPU SLURM_MEM_PER_NODE",
            "# With this status srun reports its own errors, which are no failures of the ranks.",
            f"export SLURM_EXIT_ERROR={_SRUN_FAILED}",
            *self._steps(" ".join(["srun", *self._srun_options(parts), *self._command()])),
            "# Later jobs wait for this one to succeed, even if a rank fails after the run has finished.",
            "[ ! -e result.json ] || code=0",
            'exit "$code"',
        ]

    def _steps(self, srun: str) -> list[str]:
        """Return one step, or a loop that starts another step while decide_restart requests it."""
        module = module_in(self.run, DECIDE_RESTART) or DECIDE_RESTART
        words = [self.python, "-P", "-m", module, str(self.run.path)]
        question = "# A step that did not finish the run: does the run go on, and how?"
        after = f'{shlex.join(words)} "$code"'
        if self.resources.requeue != "auto":
            return [srun, "code=$?", "", question, f'[ "$code" = 0 ] || {after}']
        return [
            "while true; do",
            srun,
            "code=$?",
            "",
            question,
            '[ "$code" != 0 ] || break',
            f"{after} {IN_PLACE}",
            f'[ "$?" = {ExitCode.RESTART_STEP} ] || break',
            "done",
        ]

    def _srun_options(self, parts: tuple[Component, ...]) -> list[str]:
        options = [
            "--kill-on-bad-exit=1",
            # Only rank 0 writes the report, and a cluster's WaitTime would kill it meanwhile.
            "--wait=0",
            *(f"--{name}={value}" for name, value in _step_options(parts[0]).items()),
            "--unbuffered",
            "--open-mode=append",
            '--output="logs/%j.%s.${SLURM_RESTART_COUNT:-0}.rank_%5t.log"',
        ]
        if len(parts) > 1:
            options.append("--het-group=" + ",".join(map(str, range(len(parts)))))
        return options

    def _command(self) -> list[str]:
        # Code of an earlier version does not unblock the signals that the current module blocks.
        is_earlier = self.run.code.exists() and not self.run.has_code(_START_TASK)
        module = "submitit.core._submit" if is_earlier else _START_TASK
        return [shlex.quote(self.python), "-u", "-m", module, "submitit"]

    def to_json(self) -> dict[str, object]:
        """Return the output of `stk plan --json`."""
        return {
            "run_id": self.run.run_id,
            "identity": identity(self.experiment),
            "config": to_plain(self.experiment),
            "script": str(self),
            "world_size": self.world_size,
        }


def directives(options: Mapping[str, object]) -> list[str]:
    return [directive(name, value) for name, value in options.items()]


def both_dependencies(given: object, added: str, need: str) -> str:
    """Return both dependencies. Raises UserError if the given one has alternatives: Slurm cannot mix them."""
    if "?" in str(given or ""):
        raise UserError(
            f"resources.dependency is {given}, where one of several is enough: {need}, and Slurm cannot "
            "combine both"
        )
    return f"{given},{added}" if given else added


def _check_python(python: str) -> None:
    """Raise UserError for a Python that is deleted before the job starts."""
    # A folder of uv's cache.
    if re.search(r"/builds-v\d+/\.tmp\w+/", python):
        raise UserError(
            f"{python} is in a temporary environment, which uv deletes when this command ends: the job would "
            "not find it. Add the package to the environment (uv add, uv pip install) instead of --with"
        )


def _check_folder(run: RunDir) -> None:
    """Raise UserError for a folder with a character that Slurm or the job would change."""
    for character, reason in _NOT_IN_FOLDERS.items():
        if character in str(run.path):
            raise UserError(
                f"the run folder {str(run.path)!r} holds {character!r}: {reason}. "
                "STK_EXPERIMENT_DIR chooses another place."
            )


def _step_options(first: Component) -> dict[str, str]:
    if first.step_options:
        return {name: shlex.quote(str(value)) for name, value in first.step_options.items()}
    if "cpus-per-gpu" in first.options:
        # srun inherits it from the job, and an additional number of CPUs would take precedence.
        return {}
    cpus = first.options.get("cpus-per-task")
    # Since 22.05, srun does not inherit this from the job.
    return {"cpus-per-task": "${SLURM_CPUS_PER_TASK:-1}" if cpus is None else shlex.quote(str(cpus))}
