"""Fixtures for all tests."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

# A slow machine is no fault of what is tested. In CI the examples are the same each time.
settings.register_profile(
    "house", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize="CI" in os.environ
)
settings.load_profile("house")

_SHARING = ("tests/cluster/", "tests/faults/")


# Before xdist reads the marks.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Of several workers each gets whole files, because the tests of one share what they have trained.

    Those of a folder that shares a cluster, or runs, are one worker's.
    """
    for item in items:
        file = item.nodeid.partition("::")[0]
        group = next((folder for folder in _SHARING if file.startswith(folder)), file)
        item.add_marker(pytest.mark.xdist_group(group))


@pytest.fixture
def ordinary_user() -> Iterator[None]:
    """Root may read everything: be somebody else for a while."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    yield
    os.seteuid(0)
