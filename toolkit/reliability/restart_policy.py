"""Whether a run is restarted after an attempt has ended, or left to its user.

The decision depends only on the run's folder, so that the local launcher, the batch script after its step
and the next attempt all make the same one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from toolkit.config.schema import Experiment
from toolkit.errors import NoProgress
from toolkit.files import read_json, write_json
from toolkit.run.attempts.records import AttemptRecord, read_attempts
from toolkit.run.events import note_event, read_events
from toolkit.run.failure.classes import FAILURE_CLASSES, KILLED, NO_PROGRESS, OF_A_SAMPLE, Policy
from toolkit.run.failure.records import failure_record
from toolkit.run.run_dir import RunDir

#: A run is not restarted automatically if this many attempts made no step, or all began at the same step.
STARTS_WITHOUT_STEP = 3
STARTS_FROM_ONE_STEP = 10

#: Number of failures after which a host is avoided.
STRIKES = 2

Action = Literal["retry", "stop", "hold"]


@dataclass(frozen=True, slots=True)
class Decision:
    """The decision about a run after an attempt has ended.

    action    retry: start it again; stop: leave it to its user; hold: the same, because it makes no progress
    why       the reason, for people
    exclude   hosts to avoid from now on
    """

    action: Action
    why: str
    exclude: tuple[str, ...] = ()


def reset_counters(run: RunDir) -> None:
    """Reset all counts of attempts and failures, because a user restarts the run."""
    if attempts := read_attempts(run):
        note_event(run, "released", attempts=len(attempts))


def after_failure(run: RunDir, experiment: Experiment) -> Decision:
    """Decide about a run after a failed attempt whose crash has been recorded.

    If the run is held, failure.json records that from then on.
    """
    attempts = _counted_attempts(run)
    exclude = suspect_hosts(run)
    if not attempts:
        return Decision("stop", "it ended before an attempt began", exclude)
    last = attempts[-1]
    why = last.why or KILLED
    if why not in FAILURE_CLASSES:
        return after_stop(run, experiment, why)
    reason = _against_retry(run, attempts, experiment)
    if reason is not None:
        return Decision("hold" if FAILURE_CLASSES[why].policy is Policy.HOLD else "stop", reason, exclude)
    if (idle := _why_no_progress(run, attempts)) is not None:
        return _hold(run, last, idle, exclude)
    crashes, allowed = _crashes(attempts), _allowed_crashes(run, experiment)
    return Decision("retry", f"{_describe(last)} (crash {crashes} of at most {allowed})", exclude)


def after_stop(run: RunDir, experiment: Experiment, why: str) -> Decision:
    """Decide about a run after an attempt that was stopped and has saved; `why` as in attempts.jsonl."""
    attempts = _counted_attempts(run)
    exclude = suspect_hosts(run)
    if why == "cancelled":
        return Decision("stop", "it was cancelled", exclude)
    timeouts = sum(each.why == "time_limit" for each in attempts[:-1]) + (why == "time_limit")
    allowed = experiment.policy.max_timeouts
    if why == "time_limit" and timeouts > allowed:
        text = f"its time limit has ended {timeouts} attempts, and resources.max_timeouts is {allowed}"
        return Decision("stop", text, exclude)
    if attempts and (idle := _why_no_progress(run, attempts)) is not None:
        return _hold(run, attempts[-1], idle, exclude)
    return Decision("retry", why, exclude)


def check_progress(run: RunDir) -> None:
    """Raise NoProgress if several attempts in a row made no step. Called as an attempt begins."""
    if (idle := _why_no_progress(run, _counted_attempts(run))) is not None:
        raise NoProgress(idle)


def suspect_hosts(run: RunDir) -> tuple[str, ...]:
    """Hosts that caused repeated infrastructure failures."""
    strikes = Counter(each.blamed for each in read_attempts(run) if each.blamed)
    return tuple(sorted(host for host, number in strikes.items() if number >= STRIKES))


def _counted_attempts(run: RunDir) -> list[AttemptRecord]:
    """The attempts since a user last restarted the run."""
    attempts = read_attempts(run)
    released = list(read_events(run, "released"))
    if not released:
        return attempts
    if isinstance(before := released[-1].facts.get("attempts"), int):
        return attempts[before:]
    return [each for each in attempts if (each.time_start or 0.0) > released[-1].time]


def _against_retry(run: RunDir, attempts: Sequence[AttemptRecord], experiment: Experiment) -> str | None:
    """Return why no other attempt may follow the last failure; None if one may."""
    last = attempts[-1]
    why = last.why or KILLED
    policy = FAILURE_CLASSES[why].policy
    limit = experiment.train.quarantine
    # Before training has begun, no sample can be the cause.
    was_training = last.resumed is not None and last.step is not None
    if limit > 0 and why in OF_A_SAMPLE and was_training:
        if not _may_be_quarantined(run, attempts, limit):
            return f"{_describe(last)}: again, and the quarantine has not helped"
    elif policy is Policy.ONCE and _times_before(attempts) > 0:
        again = "with nothing saved or written in between" if last.step is None else "at the same step"
        return f"{_describe(last)}: again {again}"
    elif policy in (Policy.STOP, Policy.HOLD):
        return _describe(last)
    crashes, allowed = _crashes(attempts), _allowed_crashes(run, experiment)
    if crashes > allowed:
        return f"{_describe(last)}: failure {crashes}, and resources.max_crashes allows {allowed}"
    return None


def _may_be_quarantined(run: RunDir, attempts: Sequence[AttemptRecord], limit: int) -> bool:
    """Whether quarantine may still find the sample at fault; it needs two failures at the same step."""
    samples = (read_json(run.quarantine) or {}).get("samples", ())
    # A sample is left out from the step at which it failed.
    step = attempts[-1].step or 0
    here = sum(sample.get("step") in (step, step + 1) for sample in samples)
    failures, expected = _times_before(attempts) + 1, 2 * (here + 1)
    return failures < expected or (failures == expected and len(samples) < limit)


def _times_before(attempts: Sequence[AttemptRecord]) -> int:
    """Number of earlier failures of the same class at the same step."""
    last = attempts[-1]
    if last.step is None:
        # Each attempt that saved, or wrote files, may have come further than those before it.
        further = (number for number, each in enumerate(attempts) if each.saved or each.wrote)
        attempts = attempts[max(further, default=0) :]
    return sum((each.why, each.step) == (last.why, last.step) for each in attempts[:-1])


def _crashes(attempts: Sequence[AttemptRecord]) -> int:
    return sum((each.why or KILLED) in FAILURE_CLASSES for each in attempts)


def _allowed_crashes(run: RunDir, experiment: Experiment) -> int:
    """The user's limit, and two for each quarantined sample, because the cause of those is removed."""
    samples = (read_json(run.quarantine) or {}).get("samples", ())
    return experiment.policy.max_crashes + 2 * len(samples)


def _why_no_progress(run: RunDir, attempts: Sequence[AttemptRecord]) -> str | None:
    """Return why the run makes no progress; None if it does."""
    latest = attempts[-STARTS_WITHOUT_STEP:]
    if len(latest) == STARTS_WITHOUT_STEP and not any(map(_made_step, latest)):
        return f"{len(latest)} attempts in a row made no step; the last one: {_describe(latest[-1])}"
    latest = attempts[-STARTS_FROM_ONE_STEP:]
    steps = {each.first_step for each in latest}
    is_stuck = len(latest) == STARTS_FROM_ONE_STEP and len(steps) == 1
    if is_stuck and not any(_has_saved(run, each) for each in latest):
        if latest[-1].saved is None:
            found = f"began at step {latest[-1].first_step or 0} and none saved a later one: save more often"
            found += " (checkpoint.every_minutes)"
        else:
            found = f"saved nothing in {run.checkpoints} and wrote nothing in {run.work}"
        return f"{len(latest)} attempts in a row {found}; the last one: {_describe(latest[-1])}"
    return None


def _made_step(attempt: AttemptRecord) -> bool:
    """Whether an attempt did a step, or found all steps done and finished."""
    is_further = (attempt.last_step or 0) > (attempt.first_step or 0)
    return attempt.first_step_s is not None or attempt.why == "finished" or is_further


def _has_saved(run: RunDir, attempt: AttemptRecord) -> bool:
    if attempt.why == "finished" or attempt.saved or attempt.wrote:
        return True
    return max(run.checkpoint_steps(), default=0) > (attempt.first_step or 0)


def _describe(attempt: AttemptRecord) -> str:
    """Describe the end of an attempt in a few words."""
    why = attempt.why or KILLED
    if attempt.rank is None:
        return why
    step = "" if attempt.step is None else f", at step {attempt.step}"
    return f"{why}, rank {attempt.rank} on {attempt.host}{step}"


def _hold(run: RunDir, last: AttemptRecord, why: str, exclude: tuple[str, ...]) -> Decision:
    """Record that the run is held. This replaces the record of the last failure and includes its message."""
    present = read_json(run.failure)
    message = why if present is None else f"{why}\n{present['message']}"
    if present is None or present["class"] != NO_PROGRESS:
        record = failure_record(
            last.nonce,
            NO_PROGRESS,
            message,
            rank=last.rank or 0,
            host=last.host or (last.hosts or ("unknown",))[0],
            phase=(present or {}).get("phase", "unknown"),
            step=last.last_step if last.step is None else last.step,
            trace=(present or {}).get("traceback", ""),
        )
        write_json(run.failure, record)
        note_event(run, "held", why=why)
    return Decision("hold", why, exclude)
