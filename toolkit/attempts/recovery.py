"""What becomes of a run whose start has ended: on by itself, or left to its user.

Everything is read from the run's folder, so that whoever asks, and whenever, gets the same answer: the
launcher on this machine, the batch script after its step, or the next start itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from toolkit.attempts.conclusion import Silence, conclude, settle
from toolkit.attempts.ledger import read_attempts
from toolkit.config.schema import Experiment
from toolkit.errors import NoProgress
from toolkit.events import note_event
from toolkit.failure.records import KILLED, KINDS, NO_PROGRESS, Policy, failure_record
from toolkit.files import read_json, read_json_lines, write_json
from toolkit.rundir import RunDir

__all__ = [
    "Decision",
    "Silence",
    "after_failure",
    "after_stop",
    "check_progress",
    "conclude",
    "release",
    "settle",
    "suspect_hosts",
]

#: A run whose last starts made no step at all, or all began at the same one, is not started by itself.
STARTS_WITHOUT_STEP = 3
STARTS_FROM_ONE_STEP = 10

#: Failures that a sample may be the cause of.
_OF_A_SAMPLE = ("exception", "diverged")

#: Strikes after which a host is avoided.
STRIKES = 2

Action = Literal["retry", "stop", "hold"]


@dataclass(frozen=True, slots=True)
class Decision:
    """What to do with a run after a start has ended.

    action    retry: start it again; stop: leave it to its user; hold: likewise, for it goes nowhere
    why       in words
    exclude   hosts to avoid from now on
    """

    action: Action
    why: str
    exclude: tuple[str, ...] = ()


def release(run: RunDir) -> None:
    """Start all counts anew: somebody has looked at the run and starts it by hand."""
    if attempts := read_attempts(run):
        note_event(run, "released", attempts=len(attempts))


def after_failure(run: RunDir, experiment: Experiment) -> Decision:
    """What to do after a start that failed, and was concluded.

    Where the decision is to hold the run, failure.json says so from then on.
    """
    attempts = _counted(run)
    exclude = suspect_hosts(run)
    if not attempts:
        return Decision("stop", "it ended before it began", exclude)
    last = attempts[-1]
    why = last.get("why", KILLED)
    if why not in KINDS:
        return after_stop(run, experiment, why)
    reason = _against_retry(run, attempts, experiment)
    if reason is not None:
        return Decision("hold" if KINDS[why].policy is Policy.HOLD else "stop", reason, exclude)
    if (idle := _idle(run, attempts)) is not None:
        return _hold(run, last, idle, exclude)
    crashes, allowed = _crashes(attempts), _allowed_crashes(run, experiment)
    return Decision("retry", f"{_tell(last)} (crash {crashes} of at most {allowed})", exclude)


def after_stop(run: RunDir, experiment: Experiment, why: str) -> Decision:
    """What to do after a start that was stopped and has saved; `why` as in attempts.jsonl."""
    attempts = _counted(run)
    exclude = suspect_hosts(run)
    if why == "cancelled":
        return Decision("stop", "it was cancelled", exclude)
    timeouts = sum(line.get("why") == "time_limit" for line in attempts[:-1]) + (why == "time_limit")
    allowed = experiment.resources.max_timeouts
    if why == "time_limit" and timeouts > allowed:
        text = f"its time limit has ended {timeouts} starts, and resources.max_timeouts is {allowed}"
        return Decision("stop", text, exclude)
    if attempts and (idle := _idle(run, attempts)) is not None:
        return _hold(run, attempts[-1], idle, exclude)
    return Decision("retry", why, exclude)


def check_progress(run: RunDir) -> None:
    """Raise NoProgress where start after start made no step. Called as another one begins."""
    if (idle := _idle(run, _counted(run))) is not None:
        raise NoProgress(idle)


def suspect_hosts(run: RunDir) -> tuple[str, ...]:
    """Hosts that were the culprits of repeated failures of the infrastructure."""
    strikes = Counter(host for line in read_attempts(run) if (host := _blamed(line)))
    return tuple(sorted(host for host, number in strikes.items() if number >= STRIKES))


def _blamed(line: dict[str, Any]) -> str | None:
    if "blamed" in line:
        return line["blamed"] or None
    kind = KINDS.get(line.get("why", ""))
    return line.get("host") if kind is not None and kind.blames_host else None


def _counted(run: RunDir) -> list[dict[str, Any]]:
    """The starts since somebody last started the run by hand after looking at it."""
    attempts = read_attempts(run)
    released = [line for line in read_json_lines(run.events) if line.get("event") == "released"]
    if not released:
        return attempts
    if isinstance(before := released[-1].get("attempts"), int):
        return attempts[before:]
    return [line for line in attempts if line.get("time_start", 0.0) > released[-1].get("time", 0.0)]


def _against_retry(run: RunDir, attempts: Sequence[dict[str, Any]], experiment: Experiment) -> str | None:
    """Why the last failure is not worth another start; None where it is."""
    last = attempts[-1]
    policy = KINDS[last["why"]].policy
    limit = experiment.train.quarantine
    if limit > 0 and last["why"] in _OF_A_SAMPLE and _was_training(last):
        if not _may_be_quarantined(run, attempts, limit):
            return f"{_tell(last)}: again, and the quarantine has not helped"
    elif policy is Policy.ONCE and _times_before(attempts) > 0:
        return f"{_tell(last)}: again at the same step"
    elif policy in (Policy.STOP, Policy.HOLD):
        return _tell(last)
    crashes, allowed = _crashes(attempts), _allowed_crashes(run, experiment)
    if crashes > allowed:
        return f"{_tell(last)}: failure {crashes}, and resources.max_crashes lets it go on after {allowed}"
    return None


def _was_training(line: dict[str, Any]) -> bool:
    """Whether training had begun: before that no sample can be at fault."""
    return "resumed" in line and line.get("step") is not None


def _may_be_quarantined(run: RunDir, attempts: Sequence[dict[str, Any]], limit: int) -> bool:
    """Whether the sample at fault may still be found: each one takes two failures at its step."""
    samples = (read_json(run.quarantine) or {}).get("samples", ())
    # A sample is left out from the step on that its failures came before.
    here = sum(sample.get("step") in (attempts[-1]["step"], attempts[-1]["step"] + 1) for sample in samples)
    failures, expected = _times_before(attempts) + 1, 2 * (here + 1)
    return failures < expected or (failures == expected and len(samples) < limit)


def _times_before(attempts: Sequence[dict[str, Any]]) -> int:
    """How often the last failure has happened before at the same step."""
    last = attempts[-1]
    return sum(
        line.get("why") == last["why"] and line.get("step") == last.get("step") for line in attempts[:-1]
    )


def _crashes(attempts: Sequence[dict[str, Any]]) -> int:
    return sum(line.get("why", KILLED) in KINDS for line in attempts)


def _allowed_crashes(run: RunDir, experiment: Experiment) -> int:
    """Those of the user, and two for each sample in quarantine, which have been cured."""
    samples = (read_json(run.quarantine) or {}).get("samples", ())
    return experiment.resources.max_crashes + 2 * len(samples)


def _idle(run: RunDir, attempts: Sequence[dict[str, Any]]) -> str | None:
    """Why the run goes nowhere; None where it does."""
    latest = attempts[-STARTS_WITHOUT_STEP:]
    if len(latest) == STARTS_WITHOUT_STEP and not any(_made_step(line) for line in latest):
        return f"{len(latest)} starts in a row made no step; the last one: {_tell(latest[-1])}"
    latest = attempts[-STARTS_FROM_ONE_STEP:]
    steps = {line.get("first_step") for line in latest}
    if len(latest) == STARTS_FROM_ONE_STEP and len(steps) == 1 and not _has_saved(run, latest[-1]):
        return (
            f"{len(latest)} starts in a row began at step {latest[-1].get('first_step')} and none saved a "
            f"later one: save more often (checkpoint.every_minutes); the last one: {_tell(latest[-1])}"
        )
    return None


def _made_step(line: dict[str, Any]) -> bool:
    """Whether a start did a step, kept or not; one that finds all steps done and finishes is as good."""
    return (
        "first_step_s" in line
        or line.get("why") == "finished"
        or line.get("last_step", 0) > line.get("first_step", 0)
    )


def _has_saved(run: RunDir, line: dict[str, Any]) -> bool:
    return max(run.checkpoint_steps(), default=0) > line.get("first_step", 0) or line.get("why") == "finished"


def _tell(line: dict[str, Any]) -> str:
    """How a start ended, in a few words."""
    why = str(line.get("why", KILLED))
    if line.get("rank") is None:
        return why
    step = "" if line.get("step") is None else f", at step {line['step']}"
    return f"{why}, rank {line['rank']} on {line.get('host')}{step}"


def _hold(run: RunDir, last: dict[str, Any], why: str, exclude: tuple[str, ...]) -> Decision:
    """Write that the run is held. The message keeps what failed last, for this record replaces it."""
    present = read_json(run.failure)
    message = why if present is None else f"{why}\n{present['message']}"
    if present is None or present["class"] != NO_PROGRESS:
        record = failure_record(
            last.get("nonce", ""),
            NO_PROGRESS,
            message,
            rank=last.get("rank") or 0,
            host=last.get("host") or (last.get("hosts") or ["unknown"])[0],
            phase=(present or {}).get("phase", "unknown"),
            step=last.get("step", last.get("last_step")),
            trace=(present or {}).get("traceback", ""),
        )
        write_json(run.failure, record)
        note_event(run, "held", why=why)
    return Decision("hold", why, exclude)
