"""A machine is the same under another name, but not in another PID namespace."""

from __future__ import annotations

import socket
import subprocess
import sys

import pytest

from toolkit.system.host import boot, is_here

CODE = "import sys; from toolkit.system.host import is_here; print(is_here(*sys.argv[1:]))"


def renamed(*options: str) -> str:
    """What a process that sees its machine under another name says of records of this process."""
    inside = ["sh", "-c", 'hostname another-name && exec "$@"', "sh", sys.executable, "-c", CODE]
    unshare = ["unshare", "--map-root-user", "--uts", *options]
    probe = subprocess.run([*unshare, "true"], capture_output=True, text=True, check=False)
    if probe.returncode:
        pytest.skip(f"this machine lets its users make no namespaces: {probe.stderr}")
    command = [*unshare, *inside, socket.gethostname(), boot()]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_a_renamed_machine_is_the_same() -> None:
    assert renamed() == "True"


def test_another_pid_namespace_is_another_machine() -> None:
    assert renamed("--pid", "--fork") == "False"


def test_an_equal_host_name_is_sufficient() -> None:
    assert is_here(socket.gethostname(), None)
    assert is_here(socket.gethostname(), "of the boot before")


@pytest.mark.parametrize("boot_then", [None, "", 1, [], {}, "of another machine"])
def test_another_name_with_another_boot_id_is_another_machine(boot_then: object) -> None:
    assert not is_here("elsewhere", boot_then)


def test_host_names_are_compared_if_the_boot_id_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolkit.system.host.boot", lambda: "")
    assert not is_here("elsewhere", "")
    assert is_here(socket.gethostname(), "")
