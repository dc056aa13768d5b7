"""Fixtures for all tests."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest


@pytest.fixture
def ordinary_user() -> Iterator[None]:
    """Root may read everything: be somebody else for a while."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    yield
    os.seteuid(0)
