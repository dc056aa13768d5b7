"""What the kernel's files say of a machine."""

from __future__ import annotations

from pathlib import Path

from toolkit.monitoring.diagnostics.machine import _infiniband


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_ports_of_infiniband_are_read(tmp_path: Path) -> None:
    write(tmp_path / "mlx5_0/ports/1/state", "4: ACTIVE\n")
    write(tmp_path / "mlx5_0/ports/1/rate", "200 Gb/sec (4X HDR)\n")
    assert _infiniband(tmp_path) == [{"name": "mlx5_0:1", "state": "ACTIVE", "rate": "200 Gb/sec (4X HDR)"}]
