"""Facts about a torch build from a child process, for a fake torch and once for the real one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from toolkit.monitoring.diagnostics.child_process import ask_here
from toolkit.monitoring.diagnostics.torch_build import _has_code

STAND_IN = """
__version__ = "2.9"
class version: cuda = "12.8"
class cuda:
    is_available = staticmethod(lambda: {seen})
    device_count = staticmethod(lambda: 2)
    get_arch_list = staticmethod(lambda: ["sm_80", "sm_90"])
    get_device_name = staticmethod(lambda index: ["H100", "V100"][index])
    get_device_capability = staticmethod(lambda index: [(9, 0), (7, 0)][index])
    class nccl: version = staticmethod(lambda: (2, 27, 3))
    @staticmethod
    def init(): raise RuntimeError("the driver is too old\\nmore")
class distributed:
    is_available = is_nccl_available = is_gloo_available = staticmethod(lambda: True)
get_num_threads = lambda: 4
"""


def told(folder: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> dict[str, Any]:
    (folder / "torch.py").write_text(text)
    monkeypatch.setenv("PYTHONPATH", str(folder))
    return dict(ask_here(["torch"], 60)["torch"])


def test_gpus_without_code_in_the_build_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    facts = told(tmp_path, monkeypatch, STAND_IN.format(seen=True))
    assert facts["devices"] == ["H100", "V100"]
    assert facts["without_code"] == ["V100 (sm_70)"]
    assert (facts["cuda"], facts["nccl"]) == ("12.8", "2.27.3")


def test_unusable_gpus_are_reported_with_the_message_of_cuda(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts = told(tmp_path, monkeypatch, STAND_IN.format(seen=False))
    assert (facts["devices"], facts["why"]) == ([], "the driver is too old")


def test_a_torch_that_cannot_be_imported_is_reported_with_its_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts = told(tmp_path, monkeypatch, "raise OSError('libcudart.so.12: cannot open')")
    assert facts == {"version": None, "why": "OSError: libcudart.so.12: cannot open"}


def test_the_installed_torch_is_reported_with_its_version() -> None:
    import torch

    facts = ask_here(["torch"], 300)["torch"]
    assert (facts["version"], facts["has_gloo"]) == (torch.__version__, True)


@pytest.mark.parametrize(
    "capability, built_for, runs",
    [
        ((9, 0), ["sm_80", "sm_90a"], True),
        ((8, 9), ["sm_80"], True),
        ((7, 0), ["sm_80", "compute_80"], False),
        ((12, 0), ["sm_90"], False),
        ((12, 0), ["compute_90"], True),
        ((5, 0), [], True),
    ],
)
def test_binary_code_needs_its_family_and_ptx_runs_on_newer_gpus(
    capability: tuple[int, int], built_for: list[str], runs: bool
) -> None:
    assert _has_code(*capability, built_for) is runs
