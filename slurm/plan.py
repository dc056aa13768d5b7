"""JobPlan: an experiment, where it will run, and the very script that does it. Pure."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass

from slurm.quoting import directive, export
from slurm.repeating import EXIT_AGAIN, IN_PLACE
from slurm.resources import Component, components, signal_lead_s, world_size
from slurm.why import WARNING_SIGNAL
from toolkit.config import identity, to_plain, to_yaml
from toolkit.config.processes import node_range
from toolkit.config.schema import Experiment, Resources
from toolkit.errors import UserError
from toolkit.rundir import RunDir

#: sbatch options that the promises of this project rest on, and what to use instead.
_OWN_OPTIONS = {
    "job-name": "a lost job is found again by its name; `name` is its first part",
    "chdir": "the job works in the run's folder; STK_EXPERIMENT_DIR chooses where that lies",
    "open-mode": "what an earlier start wrote must stay",
    "requeue": "an interrupted job must go back into the queue",
    "no-requeue": "an interrupted job must go back into the queue",
    "signal": "resources.signal_s sets the warning before the time limit",
    "array": "one run is one job, and `stk sweep` makes arrays of runs",
    "wrap": "the batch script is the plan's own",
    "nodes": "use resources.nodes",
    "ntasks": "use resources.nodes and resources.tasks_per_node",
    "ntasks-per-node": "use resources.tasks_per_node",
}

#: Measured with Slurm 22.05: a batch script in such a folder starts nowhere, or elsewhere.
_NOT_IN_FOLDERS = {
    "%": "Slurm expands it as a pattern",
    "\\": "Slurm drops it",
    "\n": "sbatch reads its options line by line",
    ":": "it separates folders in PYTHONPATH",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPlan:
    """What `stk submit` would do; str(plan) is the batch script, byte for byte.

    number is how often the run was submitted before: it makes the job's name unique, so that a job
    whose id was never recorded is found again by name. after is the job that this one follows, whatever
    that comes to; what the resources depend on has come true by then. awaits is a job that must have
    ended well, or this one is taken out of the queue.
    """

    experiment: Experiment
    resources: Resources
    run: RunDir
    number: int = 0
    after: str | None = None
    awaits: str | None = None
    python: str = sys.executable

    @property
    def identity(self) -> str:
        return identity(self.experiment)

    @property
    def world_size(self) -> int:
        return world_size(self.resources)

    @property
    def job_name(self) -> str:
        return f"{self.run.run_id}.{self.number}"

    def __str__(self) -> str:
        _check_folder(self.run)
        _check_options(self.resources)
        parts = components(self.resources)
        return "\n".join(
            [
                "#!/bin/bash",
                *directives(self.options()),
                *(line for part in parts[1:] for line in ["#SBATCH hetjob", *directives(part.options)]),
                "",
                *self._environment(),
                "",
                *self._launch(parts),
                "",
            ]
        )

    def options(self) -> dict[str, object]:
        """What sbatch is told of the job, or of the first component of an uneven one."""
        # Slurm must put the job back after a preemption or the loss of a host, and what the first
        # start wrote must still be there then.
        fixed = {
            "job-name": self.job_name,
            "chdir": self.run.path,
            "output": "logs/%j.batch.log",
            "open-mode": "append",
            "requeue": True,
            "signal": f"{WARNING_SIGNAL}@{signal_lead_s(self.resources)}",
        }
        given = components(self.resources)[0].options
        return {**fixed, **given, **self._dependencies(given.get("dependency"))}

    def _dependencies(self, given: object) -> dict[str, object]:
        """What the job waits for, besides what the resources say."""
        if self.after:
            return {"dependency": f"afterany:{self.after}"}
        if not self.awaits:
            return {}
        if "?" in str(given or ""):
            raise UserError(
                f"resources.dependency is {given}, where one of several is enough: the job of the run before "
                "must end well in any case, and Slurm cannot be told both"
            )
        every = ",".join(filter(None, [str(given or ""), f"afterok:{self.awaits}"]))
        # What can never start would stay in the queue for ever.
        return {"dependency": every, "kill-on-invalid-dep": "yes"}

    def _environment(self) -> list[str]:
        return [
            *self.resources.setup,
            *(export(name, value) for name, value in self.resources.environment.items()),
            f"export PYTHONPATH={shlex.quote(str(self.run.code))}${{PYTHONPATH:+:$PYTHONPATH}}",
            "export PYTHONUNBUFFERED=1",
            "export SUBMITIT_EXECUTOR=slurm",
            # torch warns on each connection where a host has no name for an address.
            "export TORCH_CPP_LOG_LEVEL=${TORCH_CPP_LOG_LEVEL:-ERROR}",
        ]

    def _launch(self, parts: tuple[Component, ...]) -> list[str]:
        pickle = '"submitit/${SLURM_JOB_ID}_submitted.pkl"'
        return [
            # Whoever submitted may have died before naming the pickle after the job.
            # -f, for the submitter may be naming it in this very moment.
            f"[ -e {pickle} ] || ln -f submitit/job.pkl {pickle} || exit 1",
            "mkdir -p logs",
            "",
            # Ignored, not trapped: bash heeds a trapped signal only after the command that runs, and a
            # `wait` for one in the background returns early, even for a signal that came before it did.
            # srun takes its signals whether they are ignored or not, and the ranks are not its children.
            "# The ranks save when they are asked to leave: no signal may end this script before them.",
            "trap '' TERM INT HUP USR1 USR2",
            *self._steps(" ".join(["srun", *self._srun_options(parts), *self._command()])),
            'exit "$code"',
        ]

    def _steps(self, srun: str) -> list[str]:
        """One step; or one after another, as long as a crash is no reason to give the hosts back."""
        words = [self.python, "-P", "-m", "slurm.after_step", str(self.run.path)]
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
            f'[ "$?" = {EXIT_AGAIN} ] || break',
            "done",
        ]

    def _srun_options(self, parts: tuple[Component, ...]) -> list[str]:
        options = [
            "--kill-on-bad-exit=1",
            # Rank 0 writes the report alone: a cluster's WaitTime would have it killed meanwhile.
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
        return [shlex.quote(self.python), "-u", "-m", "submitit.core._submit", "submitit"]

    def to_json(self) -> dict[str, object]:
        """What `stk plan --json` prints."""
        return {
            "run_id": self.run.run_id,
            "identity": self.identity,
            "config": to_plain(self.experiment),
            "script": str(self),
            "world_size": self.world_size,
        }

    def describe(self) -> str:
        """What `stk plan` prints for people."""
        return f"# {self.run.path}\n{self._size()}\n{to_yaml(self.experiment)}\n# batch script\n\n{self}"

    def _size(self) -> str:
        least, most = node_range(self.resources.nodes)
        if least == most:
            return ""
        least *= self.resources.tasks_per_node
        return f"# {least} to {self.world_size} processes, by how many hosts are free\n"


def directives(options: Mapping[str, object]) -> list[str]:
    """One #SBATCH line for each option."""
    return [directive(name, value) for name, value in options.items()]


def _check_folder(run: RunDir) -> None:
    """Raise UserError for a folder that would not reach the job unchanged."""
    for character, reason in _NOT_IN_FOLDERS.items():
        if character in str(run.path):
            raise UserError(
                f"the run folder {str(run.path)!r} holds {character!r}: {reason}. "
                "STK_EXPERIMENT_DIR chooses another place."
            )


def _check_options(resources: Resources) -> None:
    """Raise UserError for an sbatch option that would break what the job relies on."""
    for given in resources.sbatch:
        name = given.lstrip("-").replace("_", "-")
        if name in _OWN_OPTIONS:
            raise UserError(f"resources.sbatch.{given} cannot be set here: {_OWN_OPTIONS[name]}.")


def _step_options(first: Component) -> dict[str, str]:
    """What the step is told of its tasks, quoted for the shell."""
    if first.step_options:
        return {name: shlex.quote(str(value)) for name, value in first.step_options.items()}
    cpus = first.options.get("cpus-per-task")
    # From 22.05 on srun does not take this over from the job.
    return {"cpus-per-task": "${SLURM_CPUS_PER_TASK:-1}" if cpus is None else shlex.quote(str(cpus))}
