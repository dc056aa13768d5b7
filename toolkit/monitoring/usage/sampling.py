"""A thread in each rank that measures the rank's resource usage, for views and reports.

It does not affect training: it does not use torch, a full disk or a hung driver ends only this thread, and
the process exits without waiting for it.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
from contextlib import suppress

from toolkit.files import write_view
from toolkit.monitoring.usage.probes import GpuProbe, ProcessProbe, gpu_probe, peak_rss_mb
from toolkit.monitoring.usage.values import GpuUsage, Moment, RankUsage
from toolkit.run.run_dir import RunDir
from toolkit.system.cgroups import memory_limit_mb
from toolkit.system.world import World

#: Points that are kept.
LONGEST = 120


class History:
    """Keeps evenly spaced points: when full, it drops every second one and then adds half as many."""

    def __init__(self, longest: int = LONGEST) -> None:
        self._longest = longest
        self._kept: list[Moment] = []
        self._every = 1
        self._added = 0

    def add(self, moment: Moment) -> None:
        """Add the newest point, or skip it."""
        if self._added % self._every == 0:
            if len(self._kept) == self._longest:
                self._kept = self._kept[::2]
                self._every *= 2
            if self._added % self._every == 0:
                self._kept.append(moment)
        self._added += 1

    @property
    def moments(self) -> tuple[Moment, ...]:
        """The points that are kept, oldest first."""
        return tuple(self._kept)


#: Seconds between two measurements, and number of measurements between two writes.
_PERIOD_S, _WRITE_EVERY = 2.0, 5
#: Seconds that the last measurement may take at the end: a hung driver must not delay the rank.
_PATIENCE_S = 2.0

log = logging.getLogger("toolkit")


class UsageSampler:
    """Measures this rank while the context is open, and keeps its file current. A context manager.

    device  the rank's device, as torch prints it
    """

    def __init__(self, run: RunDir, world: World, device: str, period_s: float = _PERIOD_S) -> None:
        self._path = run.usage(world.nonce, world.rank)
        self._world, self._device = world, device
        self._period_s = period_s
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._work, name="usage", daemon=True)

    def __enter__(self) -> UsageSampler:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join(_PATIENCE_S)

    def _work(self) -> None:
        try:
            with suppress(OSError):
                self._path.parent.mkdir(exist_ok=True)
            with gpu_probe(self._device) as gpu:
                self._measure(_Tally(self._world, self._device, gpu))
        except Exception as error:
            log.warning("the resource usage of this rank is no longer measured: %s", error)

    def _measure(self, tally: _Tally) -> None:
        number, is_last = 0, False
        while not is_last:
            is_last = self._ended.wait(self._period_s)
            tally.add()
            if is_last or number % _WRITE_EVERY == 0:
                # The disk may be full now, and have room at the next write.
                with suppress(OSError):
                    write_view(self._path, tally.usage().to_json())
            number += 1


class _Tally:
    """A summary of all measurements so far."""

    def __init__(self, world: World, device: str, gpu: GpuProbe | None) -> None:
        self._world = world
        self._device = device
        self._process, self._gpu = ProcessProbe(), _GpuTally(gpu) if gpu else None
        self._began = time.monotonic()
        self._history = History()
        self._samples = 0
        self._peak_mb = self._cpu_seconds = 0.0
        self._last = Moment(time=time.time(), rss_mb=0.0, cpu_percent=0.0)
        self._measured = self._began
        self._cpus, self._limit_mb = len(os.sched_getaffinity(0)), memory_limit_mb()

    def add(self) -> None:
        rss_mb, cpu_percent = self._process.read()
        now = time.monotonic()
        self._cpu_seconds += cpu_percent / 100 * (now - self._measured)
        self._measured = now
        self._samples += 1
        self._peak_mb = max(self._peak_mb, rss_mb, peak_rss_mb())
        if self._gpu:
            self._gpu.add()
        self._last = Moment(
            time=round(time.time(), 2),
            rss_mb=round(rss_mb, 1),
            cpu_percent=round(cpu_percent, 1),
            gpu_utilization=self._gpu.utilization if self._gpu else None,
            gpu_memory_mb=round(self._gpu.memory_mb, 1) if self._gpu else None,
        )
        self._history.add(self._last)

    def usage(self) -> RankUsage:
        seconds = self._measured - self._began
        return RankUsage(
            time=self._last.time,
            nonce=self._world.nonce,
            rank=self._world.rank,
            host=socket.gethostname(),
            device=self._device,
            samples=self._samples,
            seconds=round(seconds, 2),
            rss_mb=self._last.rss_mb,
            rss_peak_mb=round(self._peak_mb, 1),
            cpu_percent=self._last.cpu_percent,
            cpu_percent_mean=round(100 * self._cpu_seconds / max(1e-3, seconds), 1),
            cpus=self._cpus,
            memory_limit_mb=self._limit_mb,
            gpu=self._gpu.usage() if self._gpu else None,
            history=self._history.moments,
        )


class _GpuTally:
    """A summary of all measurements of the GPU so far."""

    def __init__(self, probe: GpuProbe) -> None:
        self._probe = probe
        self._count: int = 0
        self._sum = 0.0
        self._peak_mb = self._total_mb = 0.0
        self.utilization: float | None = None
        self.memory_mb = 0.0

    def add(self) -> None:
        self.utilization, self.memory_mb, self._total_mb = self._probe.read()
        self._peak_mb = max(self._peak_mb, self.memory_mb)
        if self.utilization is not None:
            self._count, self._sum = self._count + 1, self._sum + self.utilization

    def usage(self) -> GpuUsage:
        return GpuUsage(
            name=self._probe.name,
            uuid=self._probe.uuid,
            utilization=self.utilization,
            utilization_mean=round(self._sum / self._count, 1) if self._count else None,
            memory_mb=round(self.memory_mb, 1),
            memory_peak_mb=round(self._peak_mb, 1),
            memory_total_mb=round(self._total_mb, 1),
        )
