"""What the batch script runs after a step that did not finish its run: does the run go on, and how?

python -P -m slurm.after_step RUN CODE [in-place]
python -P -m slurm.after_step CONFIG CODE [key=value …]

A step that saved and left has usually been handed over by its rank 0 already. What is left for this are
the failures, and the stops that could not be handed over. It takes its time: nothing waits for it but an
idle job. Its status is EXIT_AGAIN where the script is to start the step again, and says that it can.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from slurm.handover import Job, go_on, is_settled, seen_before, start_again, wants_chain, why_of
from slurm.oom import out_of_memory
from slurm.repeating import EVENT, EXIT_AGAIN, IN_PLACE, attempts_before
from slurm.sbatch import without_hosts
from slurm.status.rows import is_training_here
from slurm.submissions import last_resources
from slurm.why import REQUESTED, Seen, is_back
from toolkit.attempts import recovery
from toolkit.attempts.ledger import explain_last, read_attempts
from toolkit.config import load, load_resolved, run_id
from toolkit.create import experiment_dir
from toolkit.errors import StkError
from toolkit.events import note_event
from toolkit.failure.classes import OOM_KILLED
from toolkit.failure.records import KINDS
from toolkit.notices.notify import notify
from toolkit.rundir import RunDir, find_run

#: How long a controller that does not answer is asked: a restart of it takes minutes.
_PATIENCE_S = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """The step that has ended.

    line       its line of attempts.jsonl; None where it died before it wrote one
    is_newest  whether no other start has begun since
    """

    run: RunDir
    job: Job
    code: int
    line: Mapping[str, Any] | None
    is_newest: bool

    @classmethod
    def of(cls, run: RunDir, code: int, environ: Mapping[str, str]) -> Step:
        job = Job.around(environ)
        attempts = read_attempts(run)
        before = attempts_before(run, job.environ["SLURM_JOB_ID"], job.restart)
        own = [line for line in attempts if _is_of(line, job) and line["attempt"] > before]
        line = own[-1] if own else None
        is_newest = line is attempts[-1] if own else not is_training_here(run)
        return cls(run=run, job=job, code=code, line=line, is_newest=is_newest)

    @property
    def was_orderly(self) -> bool:
        """Whether it saved and left because it was asked to."""
        return self.line is not None and "time_end" in self.line and self.line["why"] not in KINDS


def _is_of(line: Mapping[str, Any], job: Job) -> bool:
    return (line.get("job_id"), line.get("restart")) == (job.environ["SLURM_JOB_ID"], job.restart)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What was done, in a sentence; and whether the script is to start the step again."""

    text: str
    again: bool = False


def decide(
    run: RunDir,
    code: int,
    environ: Mapping[str, str],
    patience_s: float = _PATIENCE_S,
    *,
    in_place: bool = False,
) -> Verdict:
    """See that the run goes on where it should.

    in_place  whether the script can start the step again

    Raises SchedulerError where no controller answered, or all ways were refused.
    """
    if run.result.exists():
        return Verdict("the run has finished")
    step = Step.of(run, code, environ)
    if not step.is_newest:
        return Verdict("another start of the run has taken over")
    try:
        if step.was_orderly:
            return Verdict(_after_stop(step, patience_s))
        return _after_failure(step, patience_s, in_place)
    except StkError as error:
        note_event(run, "requeue_failed", job_id=step.job.id, reason=str(error))
        notify(run, "failure", f"it could not be started again: {error}")
        raise


def _after_stop(step: Step, patience_s: float) -> str:
    """Hand the run over, if its rank 0 could not."""
    assert step.line is not None
    if is_settled(step.run, step.line["time_end"]):
        return "the run has been handed over"
    facts = step.job.facts(patience_s)
    why = why_of(step.job, facts, seen_before(step.run, step.job))
    explain_last(step.run, why)
    go_on(step.run, step.job, facts, why, patience_s)
    return f"the run was stopped: {why}"


def _after_failure(step: Step, patience_s: float, in_place: bool) -> Verdict:
    """What Slurm did to the job comes first; then what the failure itself asks for."""
    run, job = step.run, step.job
    facts = job.facts(patience_s)
    seen = Seen(reason=None, restart=job.restart)
    why = why_of(job, facts, seen)
    if why != REQUESTED or is_back(facts, job.restart):
        if step.line is not None:
            # Of a step that died before it wrote a line, the newest one is another start's.
            explain_last(run, why)
        go_on(run, job, facts, why, patience_s)
        return Verdict(f"the job was stopped: {why}")
    recovery.conclude(
        run, step.code, job=job.environ["SLURM_JOB_ID"], restart=job.restart, silence=_silence(step)
    )
    decision = recovery.after_failure(run, load_resolved(run.config))
    if decision.action != "retry":
        note_event(run, "not_requeued", job_id=job.id, why=decision.why)
        notify(run, "hold" if decision.action == "hold" else "failure", decision.why)
        return Verdict(f"not started again: {decision.why}")
    resources = last_resources(run)
    avoids = without_hosts(resources, decision.exclude) != resources
    if in_place and not avoids and step.line is not None:
        # One that died before it wrote a line goes back into the queue: nothing would count its starts here.
        _note_again(step, step.line, decision.why)
        return Verdict(f"starting again in this job: {decision.why}", again=True)
    chained = avoids or wants_chain(run, decision.why)
    start_again(run, job, decision.why, chained, exclude=decision.exclude, patience_s=patience_s)
    notify(run, "requeue", decision.why)
    return Verdict(f"starting again: {decision.why}")


def _note_again(step: Step, line: Mapping[str, Any], why: str) -> None:
    job = step.job
    facts = {"job_id": job.environ["SLURM_JOB_ID"], "restart": job.restart, "attempt": line["attempt"]}
    note_event(step.run, EVENT, why=why, **facts)
    notify(step.run, "requeue", why)


def _silence(step: Step) -> recovery.Silence:
    """What Slurm knows of ranks that died without a word."""
    found = out_of_memory(step.run.job_log(step.job.environ["SLURM_JOB_ID"]))
    return recovery.Silence() if found is None else recovery.Silence(kind=OOM_KILLED, rank=found.task)


def run_of(what: str, overrides: Sequence[str]) -> RunDir:
    """The run that a folder, an id or an experiment file names."""
    path = Path(what)
    if path.is_file():
        return RunDir(experiment_dir() / run_id(load(path, overrides)))
    return find_run(what, experiment_dir())


def main() -> int:
    what, code, *overrides = sys.argv[1:]
    in_place = overrides == [IN_PLACE]
    try:
        run = run_of(what, [] if in_place else overrides)
        verdict = decide(run, int(code), os.environ, in_place=in_place)
        print(f"stk: {verdict.text}", flush=True)
    except StkError as error:
        print(f"stk: not started again, stk resume does it. {error}", flush=True)
        return error.exit_code
    return EXIT_AGAIN if verdict.again else 0


if __name__ == "__main__":
    sys.exit(main())
