"""A machine is the same one under another name, but not in another space of process ids."""

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


def test_a_machine_that_got_another_name_is_the_same() -> None:
    assert renamed() == "True"


def test_where_process_ids_mean_something_else_it_is_another_machine() -> None:
    assert renamed("--pid", "--fork") == "False"


def test_a_name_is_enough_as_old_records_have_no_boot() -> None:
    assert is_here(socket.gethostname(), None)
    assert is_here(socket.gethostname(), "of the boot before")


@pytest.mark.parametrize("boot_then", [None, "", 1, [], {}, "of another machine"])
def test_another_name_and_no_boot_of_this_machine_is_another_machine(boot_then: object) -> None:
    assert not is_here("elsewhere", boot_then)


def test_where_the_system_tells_no_boot_names_decide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolkit.system.host.boot", lambda: "")
    assert not is_here("elsewhere", "")
    assert is_here(socket.gethostname(), "")
