"""Two machines in this one: hosts with a name, a network and files of their own."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.cluster.claim import Claim
from tests.cluster.network import Network, choose_subnet
from toolkit.rundir import RunDir, find_runs

#: Of a test's surroundings, what would steer the product.
_FOREIGN = ("STK_", "SLURM_", "TORCHELASTIC_")
_FOREIGN_NAMES = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "PYTHONPATH")
_PATIENCE_S = 240


@dataclass(frozen=True, slots=True)
class Machine:
    """One machine: its address, and where its runs go."""

    name: str
    address: str
    network: Network
    home: Path

    def start(self, *arguments: object, faults: str = "") -> subprocess.Popen[str]:
        """Type `stk …` on this machine; the launcher's own output is in one pipe."""
        own = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(_FOREIGN) and name not in _FOREIGN_NAMES
        }
        stk = [sys.executable, "-m", "slurm", *map(str, arguments)]
        return subprocess.Popen(
            self.network.on_host(self.name, stk),
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
        output, _ = process.communicate(timeout=_PATIENCE_S)
        answers.append((process.returncode, output))
    print(*(output for _, output in answers), sep="\n----\n")
    return answers
