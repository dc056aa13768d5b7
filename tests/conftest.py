"""Fixtures for all tests."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadFileScheduling

# A slow machine is no fault of what is tested. In CI the examples are the same each time.
settings.register_profile(
    "house", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize="CI" in os.environ
)
settings.load_profile("house")

#: Two clusters, one for each worker.
_SHARING = ("tests/cluster/product/", "tests/cluster/", "tests/faults/")


class _ByFile(LoadFileScheduling):
    """Of several workers each gets whole files, because the tests of one share what they have trained.

    Those of a folder that shares a cluster, or runs, are one worker's.
    """

    def _split_scope(self, nodeid: str) -> str:
        shared = (folder for folder in _SHARING if nodeid.startswith(folder))
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
