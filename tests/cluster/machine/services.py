"""The cluster's daemons in the order in which they need each other, each waited for until it answers."""

import os
import socket
from pathlib import Path

from .daemons import Daemons
from .network import Network, Subnet
from .state_folder import StateFolder


class Services:
    """Starts munge, the database, and Slurm's daemons for one cluster."""

    def __init__(self, state: StateFolder, network: Network, daemons: Daemons) -> None:
        self._state = state
        self._network = network
        self._daemons = daemons

    def start_munge(self) -> None:
        state = self._state
        state.munge_key.touch(mode=0o600)
        state.munge_key.write_bytes(os.urandom(128))
        self._daemons.start(
            "munged",
            [
                "munged",
                "--foreground",
                f"--key-file={state.munge_key}",
                f"--seed-file={state.munge_key.parent}/munge.seed",
                f"--socket={state.munge_socket}",
                f"--pid-file={state.pids}/munged.own",
            ],
        )
        self._daemons.wait_for("munged", lambda: _answers(state.munge_socket))

    def start_database(self) -> None:
        """Start a MariaDB of our own: no TCP port, a socket in the state folder, its root is our root."""
        state = self._state
        # Temporary tables too: in /tmp, two clusters that start at once delete each other's.
        folders = [f"--datadir={state.database}", f"--tmpdir={state.database_scratch}"]
        own = ["--no-defaults", "--user=root", *folders]
        account = ["--auth-root-authentication-method=socket", "--skip-test-db", "--skip-name-resolve"]
        self._daemons.run("mariadb-install-db", ["mariadb-install-db", *own, *account])
        # Nothing here must survive a power cut: do not wait for the disk.
        fast = ["--innodb-flush-log-at-trx-commit=0", "--innodb-flush-method=nosync", "--skip-log-bin"]
        listen = ["--skip-networking", f"--socket={state.database_socket}"]
        pid_file = f"--pid-file={state.pids}/mariadbd.own"
        self._daemons.start("mariadbd", ["mariadbd", *own, *listen, *fast, pid_file])
        self._daemons.wait_for("mariadbd", lambda: _answers(state.database_socket))

    def start_accounting(self, subnet: Subnet) -> None:
        # slurmdbd has no key for the socket's path, but the client library in it reads this variable.
        environment = self._slurm_environment() | {"MYSQL_UNIX_PORT": str(self._state.database_socket)}
        self._daemons.start("slurmdbd", ["slurmdbd", "-D"], environment)
        self._daemons.wait_for("slurmdbd", lambda: _listens(subnet.login_address, subnet.accounting_port))

    def start_controller(self, subnet: Subnet) -> None:
        self._daemons.start("slurmctld", ["slurmctld", "-D"], self._slurm_environment())
        self._daemons.wait_for("slurmctld", lambda: _listens(subnet.login_address, subnet.controller_port))

    def start_host(self, host: str) -> None:
        command = self._network.on_host(host, ["slurmd", "-D", "-N", host, "-f", str(self._state.slurm_conf)])
        self._daemons.start(f"slurmd-{host}", command, self._slurm_environment())

    def _slurm_environment(self) -> dict[str, str]:
        return {"SLURM_CONF": str(self._state.slurm_conf)}


def _answers(unix_socket: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(str(unix_socket)) == 0


def _listens(address: str, port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((address, port)) == 0
