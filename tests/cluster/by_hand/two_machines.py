"""Two machines in this one: hosts with a name, a network and files of their own."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tests.cluster.machine.claim import Claim
from tests.cluster.machine.network import Network, choose_subnet
from tests.support.patience import PATIENCE_S
from tests.support.registering import own_environment
from toolkit.run.run_dir import RunDir, find_runs


@dataclass(frozen=True, slots=True)
class Machine:
    """One machine: its address, where its runs go, and the secret that the user has given it."""

    name: str
    address: str
    network: Network
    home: Path
    secret: Path | None = None

    def start(self, *arguments: object, faults: str = "") -> subprocess.Popen[str]:
        """Type `stk …` on this machine; the launcher's own output is in one pipe."""
        return self.run_python("-m", "slurm", *arguments, faults=faults)

    def run_python(self, *arguments: object, faults: str = "") -> subprocess.Popen[str]:
        """Start Python on this machine as its user does."""
        own = own_environment()
        if self.secret is not None:
            own["STK_SECRET_FILE"] = str(self.secret)
        return subprocess.Popen(
            self.network.on_host(self.name, [sys.executable, *map(str, arguments)]),
            cwd=Path(__file__).parents[3],
            env={**own, "STK_EXPERIMENT_DIR": str(self.home), "STK_FAULTS": faults},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    @property
    def run(self) -> RunDir:
        """The one run in this machine's folder."""
        (run,) = find_runs(self.home)
        return run


@dataclass(frozen=True, slots=True)
class Pair:
    """Two machines and an experiment that each can read."""

    first: Machine
    second: Machine
    config: Path

    def start(
        self, *arguments: object, counts: str = "1,1", faults: tuple[str, str] = ("", "")
    ) -> list[subprocess.Popen[str]]:
        """The same command on both, but for the number of the machine."""
        return [self.start_one(node, *arguments, counts=counts, faults=faults[node]) for node in range(2)]

    def start_one(
        self, node: int, *arguments: object, counts: str = "1,1", faults: str = ""
    ) -> subprocess.Popen[str]:
        """The command on one of them."""
        return (self.first, self.second)[node].start(
            *("run", self.config, *arguments, "--node-rank", node, "--nnodes", 2),
            *("--master-addr", self.first.address, "--gpus-per-node", counts),
            faults=faults,
        )

    def apart(self, folder: Path) -> Pair:
        """The same machines; each keeps its runs in a folder of its own under this one.

        The user has given both the same secret.
        """
        secret = folder / "secret"
        secret.write_text(f"the secret of {folder}")
        secret.chmod(0o600)
        first, second = (
            replace(machine, home=folder / machine.name, secret=secret)
            for machine in (self.first, self.second)
        )
        return replace(self, first=first, second=second)

    def sharing(self, folder: Path) -> Pair:
        """The same machines, with one folder for their runs."""
        return replace(self, first=replace(self.first, home=folder), second=replace(self.second, home=folder))


@contextlib.contextmanager
def two_machines(folder: Path) -> Iterator[tuple[Machine, Machine]]:
    """Two hosts plugged into one switch, with folders of their own; whatever runs there ends at the end."""
    name, claim = _free_name()
    names = [f"{name}-{number}" for number in (1, 2)]
    network = Network(name, names)
    subnet = choose_subnet(name)
    addresses = {host: subnet.host_address(index) for index, host in enumerate(names)}
    network.remove()
    try:
        network.create(subnet, addresses)
        first, second = (Machine(host, addresses[host], network, folder / host) for host in names)
        yield first, second
    finally:
        network.remove()
        claim.release()


def _free_name() -> tuple[str, Claim]:
    for name in ["hand", *(f"hand{number}" for number in range(2, 10))]:
        claim = Claim(name)
        if claim.take():
            return name, claim
    raise AssertionError("nine test runs have two machines each: wait for one to end")


def ended(processes: Sequence[subprocess.Popen[str]]) -> list[tuple[int, str]]:
    """Exit code and output of each, once all have ended."""
    answers = []
    for process in processes:
        output, _ = process.communicate(timeout=PATIENCE_S)
        answers.append((process.returncode, output))
    print(*(output for _, output in answers), sep="\n----\n")
    return answers
