"""A real Slurm cluster inside one machine: four hosts, accounting, preemption, pretend GPUs."""

import re
import subprocess
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Self

from tests.support.patience import PATIENCE_S
from tests.support.registering import own_environment
from toolkit.files import write_atomic

from .errors import ClusterError, CommandFailed
from .jobs import parse_records
from .machine import hosts_file, slurm_conf
from .machine.claim import Claim
from .machine.daemons import Daemons
from .machine.network import Network, Subnet, choose_subnet
from .machine.services import Services
from .machine.state_folder import StateFolder
from .waiting import wait_until

HOSTS = 4
ACCOUNT = "research"
USABLE = ("idle", "mixed", "allocated", "completing")


class Cluster:
    """The cluster called `name`; clusters of different names can be up side by side.

    Several objects may stand for one cluster, in several processes too: the machine knows what is up.
    """

    def __init__(self, name: str = "tests") -> None:
        # It becomes part of an interface's name, for which the kernel has 15 characters, and of host names.
        if not re.fullmatch("[a-z][a-z0-9]{0,9}", name):
            raise ClusterError(
                f"cluster name {name!r}: expected a small letter, then up to 9 letters or digits"
            )
        self.name = name
        self.hosts = [f"{name}-{number}" for number in range(1, HOSTS + 1)]
        self.state = StateFolder(name)
        self._claim = Claim(name)
        self.network = Network(name, self.hosts)
        self._daemons = Daemons(self.state.pids, self.state.logs)
        self._services = Services(self.state, self.network, self._daemons)

    @classmethod
    def with_free_name(cls, name: str) -> Self:
        """Return the cluster `name`, or `name2`, … : the first that no other living process owns."""
        for suffix in ["", *map(str, range(2, 10))]:
            cluster = cls(name + suffix)
            if cluster._claim.take():
                return cluster
        raise ClusterError(f"nine processes run a cluster called {name!r}, {name}2, …: wait for one to end")

    @property
    def environment(self) -> dict[str, str]:
        """What a command on the login node needs in its environment to reach this cluster."""
        return {"SLURM_CONF": str(self.state.slurm_conf)}

    @property
    def addresses(self) -> dict[str, str]:
        return {host: self._subnet.host_address(index) for index, host in enumerate(self.hosts)}

    @property
    def login_address(self) -> str:
        return self._subnet.login_address

    @property
    def _subnet(self) -> Subnet:
        try:
            return Subnet(int(self.state.subnet.read_text()))
        except FileNotFoundError:
            raise ClusterError(f"the cluster {self.name!r} is not up") from None

    # ---- up and down

    def up(self) -> None:
        """Start the cluster, over what an earlier one left, and return when all hosts are idle."""
        if not self._claim.take():
            raise ClusterError(
                f"the cluster {self.name!r} belongs to a running process: let it end, or use another name"
            )
        try:
            self._remove()
            self._start()
        except BaseException:
            self.down()
            raise

    def down(self) -> None:
        """Stop the cluster and remove every trace of it; harmless when there is none."""
        try:
            self._remove()
        finally:
            self._claim.release()

    def is_up(self) -> bool:
        """Say whether the controller answers."""
        return self.state.exists() and self.run("scontrol", "ping", check=False).returncode == 0

    def _start(self) -> None:
        self.state.create()
        subnet = choose_subnet(self.name)
        self.state.subnet.write_text(f"{subnet.number}\n")
        slurm_conf.write(slurm_conf.Description(self.name, self.state, subnet, self.addresses))
        self.network.create(subnet, self.addresses)
        hosts_file.add(self.name, {f"{self.name}-login": subnet.login_address, **self.addresses})
        self._services.start_munge()
        self._services.start_database()
        self._services.start_accounting(subnet)
        self._register_with_accounting()
        self._services.start_controller(subnet)
        for host in self.hosts:
            self._services.start_host(host)
        for host in self.hosts:
            self.wait_for_host(host)

    def _register_with_accounting(self) -> None:
        add = partial(self.run, "sacctmgr", "--immediate", "add")
        add("cluster", self.name)
        add("account", ACCOUNT, f"cluster={self.name}")
        add("user", "root", f"account={ACCOUNT}", f"defaultaccount={ACCOUNT}")

    def _remove(self) -> None:
        self._daemons.kill_all()
        self.network.remove()
        self._daemons.reap()
        hosts_file.remove(self.name)
        self.state.remove()

    # ---- commands

    def run(self, *command: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run `command` on the login node; with `check`, raise CommandFailed on another exit code than 0."""
        result = subprocess.run(
            command,
            env=own_environment() | self.environment,
            timeout=PATIENCE_S,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
        if check and result.returncode != 0:
            raise CommandFailed(result)
        return result

    # ---- jobs

    def job(self, job_id: int | str) -> dict[str, str]:
        """Return what `scontrol show job` says; of an array or a heterogeneous job, its first record."""
        return parse_records(self.run("scontrol", "show", "job", "--oneliner", str(job_id)).stdout)[0]

    def wait_for_state(self, job_id: int | str, states: str | Collection[str]) -> dict[str, str]:
        """Return the job's record as soon as its state is one of `states`."""
        wanted = [states] if isinstance(states, str) else states
        record: dict[str, str] = {}

        def is_reached() -> bool:
            record.update(self.job(job_id))
            return record["JobState"] in wanted

        wait_until(is_reached, lambda: f"job {job_id} is not {' or '.join(wanted)}: {record}")
        return record

    # ---- hosts and controller

    def host_state(self, host: str) -> str:
        """Return the host's state as sinfo names it; a `*` at its end means that the host does not answer.

        Slurm may show `mixed` or `allocated` for a minute after the last job has gone: ask squeue about jobs.
        """
        choice = ("--partition=main", f"--nodes={host}")
        return self.run("sinfo", "--noheader", *choice, "--format=%T").stdout.strip()

    def wait_for_host(self, host: str) -> None:
        """Return as soon as Slurm can use the host."""
        self._daemons.wait_for(f"slurmd-{host}", lambda: self.host_state(host) in USABLE)

    def kill_host(self, host: str) -> None:
        """Take the host's power away: it falls silent, then slurmd and all other processes die."""
        self.network.cut(host)
        self.network.kill_processes(host)
        self._daemons.reap()

    def start_host(self, host: str) -> None:
        """Boot a killed host and return when Slurm can use it."""
        before = self._slurmd_start(host)
        self.network.restore(host)
        self._services.start_host(host)
        # Until it registers, its state is from before.
        self._daemons.wait_for(f"slurmd-{host}", lambda: self._slurmd_start(host) != before)
        self.wait_for_host(host)

    def _slurmd_start(self, host: str) -> str:
        """When the slurmd that the controller knows of began, to the second."""
        return parse_records(self.run("scontrol", "show", "node", "--oneliner", host).stdout)[0][
            "SlurmdStartTime"
        ]

    def stop_controller(self) -> None:
        self._daemons.stop("slurmctld")

    def start_controller(self) -> None:
        """Return when the controller answers; its hosts stay `unknown` until they answer, seconds later."""
        self._services.start_controller(self._subnet)

    @contextmanager
    def preempting_with_user_signal(self) -> Iterator[None]:
        """Let preempted jobs get their own `--signal` in place of SIGTERM, as some sites do."""
        before = self.state.slurm_conf.read_text()
        self._reconfigure(before + "SlurmctldParameters=preempt_send_user_signal\n")
        try:
            yield
        finally:
            self._reconfigure(before)

    def _reconfigure(self, slurm_conf: str) -> None:
        # Whole at every moment: jobs' own questions to Slurm read it too.
        write_atomic(self.state.slurm_conf, slurm_conf)
        self.run("scontrol", "reconfigure")
