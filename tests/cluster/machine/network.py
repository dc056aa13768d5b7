"""The network between the hosts: one namespace for each host, all plugged into a bridge.

The bridge has a namespace of its own. There no firewall rule of the machine can drop the packets between the
hosts (as Docker's rules do with a bridge in the root namespace), and no interface name can clash with another
cluster's. The login node, which is the root namespace, has one interface into it.
"""

import contextlib
import ipaddress
import json
import os
import signal
import socket
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import ClusterError
from ..waiting import wait_until
from .programs import output_of

SUBNETS = 250


@dataclass(frozen=True, slots=True)
class Subnet:
    """One of the 250 subnets that clusters use, with the two ports that belong to it on the login node."""

    number: int

    @property
    def network(self) -> ipaddress.IPv4Network:
        return ipaddress.IPv4Network(f"10.117.{self.number}.0/24")

    @property
    def login_address(self) -> str:
        return str(self.network[1])

    def host_address(self, index: int) -> str:
        return str(self.network[11 + index])

    # Below the range from which the kernel takes ports for outgoing connections.
    @property
    def controller_port(self) -> int:
        return 17000 + 2 * self.number

    @property
    def accounting_port(self) -> int:
        return 17001 + 2 * self.number

    def is_free(self) -> bool:
        return not any(self.network.overlaps(used) for used in _networks_in_use()) and all(
            _port_is_free(port) for port in (self.controller_port, self.accounting_port)
        )


def choose_subnet(cluster_name: str) -> Subnet:
    """Take a free subnet; the search starts where the name says, so that clusters rarely meet."""
    start = zlib.crc32(cluster_name.encode())
    for offset in range(SUBNETS):
        subnet = Subnet((start + offset) % SUBNETS)
        if subnet.is_free():
            return subnet
    raise ClusterError("no subnet 10.117.x.0/24 is free: see `ip address` for who uses them")


def _networks_in_use() -> list[ipaddress.IPv4Network]:
    interfaces: list[dict[str, Any]] = json.loads(_ip("-json -4 address show"))
    return [
        ipaddress.IPv4Network(f"{address['local']}/{address['prefixlen']}", strict=False)
        for interface in interfaces
        for address in interface.get("addr_info", [])
    ]


def _port_is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("", port))
        except OSError:
            return False
    return True


@dataclass(frozen=True, slots=True)
class Network:
    """The namespaces and links of one cluster; `hosts` are the names of its hosts."""

    cluster_name: str
    hosts: Sequence[str]

    @property
    def switch(self) -> str:
        return f"stk-{self.cluster_name}-switch"

    @property
    def login_interface(self) -> str:
        return f"stk-{self.cluster_name}"

    def namespace(self, host: str) -> str:
        return f"stk-{host}"

    def create(self, subnet: Subnet, addresses: Mapping[str, str]) -> None:
        _ip(f"netns add {self.switch}")
        _ip(f"-n {self.switch} link add bridge type bridge")
        _ip(f"-n {self.switch} link set bridge up")
        self._add_login(f"{subnet.login_address}/{subnet.network.prefixlen}")
        for host in self.hosts:
            self._add_host(host, f"{addresses[host]}/{subnet.network.prefixlen}")

    def _add_login(self, address: str) -> None:
        interface = self.login_interface
        _ip(f"link add {interface} type veth peer name login netns {self.switch}")
        self._plug_in("login")
        _ip(f"address add {address} dev {interface}")
        _ip(f"link set {interface} up")

    def _add_host(self, host: str, address: str) -> None:
        namespace = self.namespace(host)
        _ip(f"netns add {namespace}")
        _ip(f"-n {self.switch} link add {host} type veth peer name eth0 netns {namespace}")
        self._plug_in(host)
        _ip(f"-n {namespace} address add {address} dev eth0")
        _ip(f"-n {namespace} link set eth0 up")
        _ip(f"-n {namespace} link set lo up")

    def _plug_in(self, port: str) -> None:
        _ip(f"-n {self.switch} link set {port} master bridge up")

    def cut(self, host: str) -> None:
        """Pull the host's plug at the switch: messages are lost, and no sender gets an error."""
        _ip(f"-n {self.switch} link set {host} down")

    def separate(self, *hosts: str) -> None:
        """Lose all messages between these hosts. Other hosts and the login node still reach each of them."""
        for host in hosts:
            _ip(f"-n {self.switch} link set {host} type bridge_slave isolated on")

    def restore(self, *hosts: str) -> None:
        """Undo what `cut` or `separate` did to hosts."""
        for host in hosts:
            _ip(f"-n {self.switch} link set {host} up")
            _ip(f"-n {self.switch} link set {host} type bridge_slave isolated off")
        # Whoever asked in vain for an address meanwhile would give up on it a second later, with all that
        # was sent there since.
        for each in self.hosts:
            _ip(f"-n {self.namespace(each)} neigh flush dev eth0")
        _ip(f"neigh flush dev {self.login_interface}")

    def on_host(self, host: str, command: Sequence[str]) -> list[str]:
        """Prefix `command` so that it runs in the host's network and under its name.

        Not with `ip netns exec`: that mounts another /sys, in which slurmd finds no cgroups.
        """
        return [
            "nsenter",
            f"--net=/var/run/netns/{self.namespace(host)}",
            *("unshare", "--uts", "sh", "-c", 'hostname "$1" && shift && exec "$@"', "sh", host),
            *command,
        ]

    def kill_processes(self, host: str) -> None:
        """Kill every process in the host's namespace: slurmd, job steps, and what they started."""
        _kill_all_in(self.namespace(host))

    def remove(self) -> None:
        """Remove what is there of namespaces, processes in them, and links; removing twice is no error."""
        # The link first: a deleted namespace takes its links along only some time later.
        if self.login_interface in _interfaces():
            _ip(f"link delete {self.login_interface}")
        existing = _namespaces()
        for namespace in [*map(self.namespace, self.hosts), self.switch]:
            if namespace in existing:
                _kill_all_in(namespace)
                _ip(f"netns delete {namespace}")


def _kill_all_in(namespace: str) -> None:
    wait_until(
        lambda: not _killed_in(namespace),
        complaint=lambda: f"processes {_pids_in(namespace)} in {namespace} survive SIGKILL",
    )


def _killed_in(namespace: str) -> list[int]:
    """Kill what is alive now and return it; what it forked meanwhile is found by the next call."""
    pids = _pids_in(namespace)
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return pids


def _pids_in(namespace: str) -> list[int]:
    return [int(pid) for pid in _ip(f"netns pids {namespace}").split()]


def _namespaces() -> set[str]:
    # A line is "name" or "name (id: 3)".
    return {line.split()[0] for line in _ip("netns list").splitlines()}


def _interfaces() -> set[str]:
    return {name for _, name in socket.if_nameindex()}


def _ip(arguments: str) -> str:
    return output_of(["ip", *arguments.split()])
