"""What the kernel's files say of a machine."""

from __future__ import annotations

from pathlib import Path

from toolkit.monitoring.diagnostics.machine import _infiniband


def test_ports_of_infiniband_are_read(tmp_path: Path) -> None:
    port = tmp_path / "mlx5_0/ports/1"
    port.mkdir(parents=True)
    (port / "state").write_text("4: ACTIVE\n")
    (port / "rate").write_text("200 Gb/sec (4X HDR)\n")
    assert _infiniband(tmp_path) == [{"name": "mlx5_0:1", "state": "ACTIVE", "rate": "200 Gb/sec (4X HDR)"}]
