"""Fixtures for all tests."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadFileScheduling

from tests.suite.failures import write_failures
from tests.support.registering import ROOT, TOY, UNDRAWN, register
from tests.without_workloads import is_of_core

# Before torch is imported, for what tests start as well: several workers share two cores, and threads of one
# that wait for each other keep them busy meanwhile (of a test of 0.3 s by itself, 15 s of CPU).
os.environ.setdefault("OMP_NUM_THREADS", "1")

# Without a buffer, Python writes the end of a line separately, and lines of two processes in one pipe mix.
os.environ.pop("PYTHONUNBUFFERED", None)

# A shell lets what it starts in the background ignore Ctrl-C, and what tests start would ignore theirs.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)

# A slow machine is no fault of what is tested. The quick tests have the same examples each time, so that
# unchanged code does not fail by chance; `./scripts/test --all` looks for new ones.
settings.register_profile(
    "new examples", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=False
)
settings.register_profile("same examples", settings.get_profile("new examples"), derandomize=True)
settings.load_profile("same examples")

#: What one worker runs, by where the names of its tests begin: they share a cluster, or runs. Some tests of
#: the product have the other cluster, so that both take about as long. Nothing is shared under no name.
_SHARING = {
    "tests/cluster/by_hand/": "",
    "tests/cluster/product/own_code/": "a cluster",
    "tests/cluster/product/stopping/test_drill": "a cluster",
    "tests/cluster/product/stopping/test_lost_hosts": "a cluster",
    "tests/cluster/product/": "the cluster of the product",
    "tests/cluster/": "a cluster",
    "tests/faults/": "faults",
    "tests/toolkit/workloads/spelling/": "runs of spelling",
}
#: What takes long, run first: begun late, it would keep one worker busy after all others have ended.
_LONG = (
    *_SHARING,
    "tests/toolkit/launch/",
    "tests/toolkit/workloads/every_task/",
    "tests/docs/",
    "tests/package/",
)


def _install_toy() -> str:
    """Let this process, and those that tests start, find the toy workload, which the core's tests use.

    Returns a folder for pytest_unconfigure to remove.
    """
    site = tempfile.mkdtemp(prefix="toy-site-")
    register(TOY, Path(site))
    sys.path += [site, str(TOY)]
    paths = [str(ROOT), site, str(TOY), str(UNDRAWN), os.environ.get("PYTHONPATH")]
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    # A worker of xdist is a started process too, but its tests look at figures.
    sys.meta_path[:] = [finder for finder in sys.meta_path if finder.__module__ != "sitecustomize"]
    return site


# Not in pytest_configure: other conftest.py files are imported before that, and import it.
_SITE = _install_toy()


def pytest_unconfigure() -> None:
    shutil.rmtree(_SITE, ignore_errors=True)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("reverse"):
        files = {path: place for place, path in enumerate(dict.fromkeys(item.path for item in items))}
        items.sort(key=lambda item: -files[item.path])
        return
    items.sort(key=lambda item: not item.nodeid.startswith(_LONG))


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options that `./scripts/test` hands over."""
    parser.addoption(
        "--without-core", action="store_true", help="leave out what python -m tests.without_workloads runs"
    )
    parser.addoption("--reverse", action="store_true", help="run the files in reverse order")
    parser.addoption("--failures", type=Path, metavar="FILE", help="write what has failed, as lines of JSON")
    parser.addoption("--repeat", default="pytest", metavar="COMMAND", help="repeats one test, in that file")


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    if config.getoption("failures"):
        stats = terminalreporter.stats
        reports = [*stats.get("error", ()), *stats.get("failed", ())]
        write_failures(config.getoption("failures"), reports, config.getoption("repeat"))


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    is_left_out = config.getoption("without_core") and is_of_core(collection_path)
    return True if is_left_out else None


class _ByFile(LoadFileScheduling):
    """Give each of several workers whole files, because the tests of one share what they have trained."""

    def _split_scope(self, nodeid: str) -> str:
        shared = (worker for begin, worker in _SHARING.items() if nodeid.startswith(begin))
        return next(shared, None) or super()._split_scope(nodeid)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadFileScheduling:
    return _ByFile(config, log)


@pytest.fixture
def ordinary_user() -> Iterator[None]:
    """Root may read everything: be somebody else for a while."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    yield
    os.seteuid(0)
