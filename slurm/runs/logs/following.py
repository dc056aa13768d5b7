"""Follow logs across requeues and restarts, until the run is no longer live."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from slurm.runs.logs.lines import Tail, tail_start
from slurm.runs.logs.showing import Clock, clock_at, heading, labelled, merged
from slurm.runs.logs.sources import Attempt, Rank, Source, sources
from slurm.runs.watching.polling import RateLimitedPoll
from slurm.status.rows import Ask, status
from toolkit.errors import RunNotFound
from toolkit.run.run_dir import RunDir
from toolkit.system.output.sanitize import log_line

POLL_S = 0.5


def liveness(run: RunDir, ask: Ask | None = None) -> Callable[[], bool]:
    """Return a function that says whether a run may be live. It queries Slurm at most twice a minute."""
    ask = ask or RateLimitedPoll()
    return lambda: not run.result.exists() and status([run], ask)[0].may_live


@dataclass(slots=True)
class _Followed:
    source: Source
    tail: Tail
    clock: Clock


@dataclass(slots=True, kw_only=True)
class Follower:
    """Follows the logs of a run.

    lines     number of existing lines that are shown first; None for all of the newest attempt
    is_live   called before each look, so that no line before the end is missed
    """

    run: RunDir
    rank: Rank
    attempt: Attempt
    lines: int | None
    is_live: Callable[[], bool]
    pause: Callable[[float], object] = time.sleep
    _followed: list[_Followed] = field(default_factory=list, init=False)
    _seen: set[str] = field(default_factory=set, init=False)
    _listed: frozenset[str] | None = field(default=None, init=False)
    _group: str = field(default="", init=False)

    def read(self) -> Iterator[str]:
        """Yield existing lines, then new ones, until the run is no longer live."""
        while True:
            is_live = self.is_live()
            self._find()
            yield from self._mixed(not is_live) if self.rank == "all" else self._one_by_one(not is_live)
            if not is_live:
                return
            self.pause(POLL_S)

    def _find(self) -> None:
        """Add new logs: at first those of the newest attempt, then all later ones."""
        if self.rank == "batch":
            listing = frozenset(path.name for path in self.run.job_logs())
        else:
            listing = frozenset(path.name for _, _, path in self.run.rank_logs())
        if listing == self._listed:
            # No new logs, so attempts.jsonl is not read.
            return
        self._listed = listing
        is_first = not self._followed
        comes = "all" if self.attempt == "newest" else self.attempt
        for source in self._wanted(self.attempt if is_first else comes):
            if source.path.name not in self._seen:
                self._seen.add(source.path.name)
                start = tail_start(source.path, self.lines if is_first else None)
                clock = clock_at(source.path, start)
                self._followed.append(_Followed(source, Tail(source.path, start), clock))
        if self._followed and is_first:
            # Logs of older attempts are not new.
            self._seen.update(source.path.name for source in self._wanted("all"))

    def _wanted(self, attempt: Attempt) -> list[Source]:
        try:
            return sources(self.run, self.rank, attempt)
        except RunNotFound:
            # There is no log yet.
            return []

    def _one_by_one(self, last: bool) -> Iterator[str]:
        for followed in self._followed:
            for line in followed.tail.look(last=last):
                yield from self._heading(followed.source)
                yield log_line(line)

    def _mixed(self, last: bool) -> Iterator[str]:
        looks = [followed.tail.look(last=last) for followed in self._followed]
        for number, line in merged(looks, [followed.clock for followed in self._followed]):
            source = self._followed[number].source
            yield from self._heading(source)
            yield labelled(source.label, line)

    def _heading(self, source: Source) -> Iterator[str]:
        """Yield a heading if the lines are of another attempt than those before."""
        if source.group == self._group:
            return
        is_first, self._group = not self._group, source.group
        if not is_first:
            # Read again: more is known about the attempt now than when its log appeared.
            found = [each for each in self._wanted("all") if each.path == source.path]
            title = found[0].title if found else source.title
            yield from ("", heading(title.rpartition(": ")[0] if self.rank == "all" else title))
