"""A run's result in a few words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from toolkit.report import formats
from toolkit.report.model import RunSummary, section, shared_title
from toolkit.report.time_and_resources import times
from toolkit.run.attempts.goodput import Goodput
from toolkit.run.records.failures import FailureRecord
from toolkit.system.output.few import few

_HOSTS_SHOWN = 8
#: Long commands may differ only at their end, but a list of a thousand files would fill a terminal.
_SETTING_WIDTH = 1000


def headline(summary: RunSummary) -> list[tuple[str, str]]:
    """Return name and value of the facts at the top; unknown ones are left out."""
    facts = {
        "state": summary.state,
        "scored": summary.scored,
        "steps": _steps(summary),
        "ran for": formats.duration(summary.seconds),
        "where": _where(summary),
        "best": best_words(summary),
        "speed": _speed(summary),
        "attempts": _attempts(summary),
        "time went to": _time(summary.goodput),
        "goodput": times.goodput_words(summary),
        "cost": times.hours_words(summary.attempt_usage),
    }
    return [(name, value) for name, value in facts.items() if value not in ("", formats.NOTHING)]


def failure_place(found: FailureRecord) -> str:
    """Return the place of a failure: rank, host, phase and step, as far as they are known."""
    parts = (("rank", found.rank), ("on", found.host), ("in phase", found.phase), ("at step", found.step))
    return " ".join(f"{word} {value}" for word, value in parts if value is not None)


def compared_split(summaries: Sequence[RunSummary]) -> str:
    """Return the split by which runs are compared: test if any run was scored on it, else validation."""
    return "test" if any("test" in summary.scores for summary in summaries) else "validation"


def setting(value: object) -> str:
    """Return a config value as YAML would show it, on one line."""
    if value is None:
        return formats.NOTHING
    return formats.one_line(str(value).lower() if isinstance(value, bool) else str(value), _SETTING_WIDTH)


def best_title(summaries: Sequence[RunSummary]) -> str:
    """Return the heading of the best evaluations of several runs."""
    metrics = {summary.best.metric for summary in summaries if summary.best}
    return f"best {shared_title(summaries, metrics.pop())}" if len(metrics) == 1 else "best"


def _steps(summary: RunSummary) -> str:
    if summary.step is None:
        return ""
    return f"{formats.count(summary.step)}{_epoch(summary)}{_early_stop(summary)}"


def _epoch(summary: RunSummary) -> str:
    if (epoch := summary.epoch) is None:
        return ""
    of = f" of {formats.count(summary.epochs)}" if summary.epochs else ""
    return f" (epoch {f'{epoch:.4g}' if epoch < 1000 else formats.count(epoch)}{of})"


def _early_stop(summary: RunSummary) -> str:
    patience = section(summary.config, "evaluation").get("patience")
    if patience is None or summary.state != "finished":
        return ""
    planned = summary.epochs or section(summary.config, "train").get("steps") or 0
    done = summary.epoch if summary.epochs else summary.step
    if done is None or done >= planned:
        return ""
    return f", stopped early (evaluation.patience: {patience})"


def _where(summary: RunSummary) -> str:
    ranks = f"{summary.world_size} rank{'s' * (summary.world_size != 1)}" if summary.world_size else ""
    device = f" on {summary.device}" if summary.device and ranks else ""
    now = summary.attempts[-1].hosts if summary.attempts else ()
    before = [host for host in summary.hosts if host not in now]
    earlier = f"earlier {few(before, _HOSTS_SHOWN)}" if before else ""
    return ", ".join(part for part in (f"{ranks}{device}", few(now, _HOSTS_SHOWN), earlier) if part)


def best_words(summary: RunSummary, short: bool = False) -> str:
    """Return the evaluation whose checkpoint was kept as best; empty if none was."""
    if summary.best is None:
        return ""
    value = summary.score(summary.best.metric, summary.best.value)
    if short:
        return f"{value} @ {formats.count(summary.best.step)}"
    name, step = summary.title(summary.best.metric), formats.count(summary.best.step)
    lost = "; an earlier best checkpoint was damaged and is lost" if "best_lost" in summary.events else ""
    lowest = "" if summary.best.is_marked else "lowest "
    score = "" if summary.best.value is None else f"{lowest}validation {name} {value} at "
    return f"{score}step {step}{lost}"


def _speed(summary: RunSummary) -> str:
    # If samples have no lengths, each counts as one token.
    tokens = None if summary.tokens_per_s == summary.samples_per_s else summary.tokens_per_s
    rates = ((summary.samples_per_s, "samples/s"), (tokens, "tokens/s"))
    return ", ".join(f"{formats.count(rate)} {unit}" for rate, unit in rates if rate)


def _time(spent: Goodput) -> str:
    """The shares of the run's total time, largest first."""
    parts = [(100 * seconds / (spent.total or 1.0), name) for name, seconds in asdict(spent).items()]
    return ", ".join(f"{name} {share:.1f} %" for share, name in sorted(parts, reverse=True) if share >= 0.05)


def _attempts(summary: RunSummary) -> str:
    if not summary.attempts:
        return ""
    last = summary.attempts[-1]
    why = f", the last one ended: {formats.one_line(last.why, 60)}" if last.why else ""
    return f"{len(summary.attempts)}{why}"
