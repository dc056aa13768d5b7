"""A run's folder, and threads for the ranks that meet in it."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from toolkit.run.run_dir import RunDir


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunDir:
    # Chosen by a rendezvous, unless it is set.
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "lo")
    return RunDir(tmp_path)


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(8) as pool:
        yield pool
