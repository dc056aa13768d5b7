"""The cluster's lines in /etc/hosts, between two marker lines."""

import fcntl
from collections.abc import Mapping
from pathlib import Path

from ..errors import ClusterError

HOSTS_FILE = Path("/etc/hosts")


def add(cluster_name: str, addresses: Mapping[str, str]) -> None:
    lines = [f"{address}\t{host}\n" for host, address in addresses.items()]
    first, last = _markers(cluster_name)
    _rewrite(cluster_name, [first, *lines, last])


def remove(cluster_name: str) -> None:
    _rewrite(cluster_name, [])


def _markers(cluster_name: str) -> tuple[str, str]:
    return f"# begin stk-cluster {cluster_name}\n", f"# end stk-cluster {cluster_name}\n"


def _rewrite(cluster_name: str, block: list[str]) -> None:
    """Replace the cluster's block by `block`, under a lock because another cluster may do the same."""
    with HOSTS_FILE.open("r+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        old = file.readlines()
        new = "".join(_without_block(old, *_markers(cluster_name)) + block)
        if new == "".join(old):
            return
        # In place, since a container mounts this file and a rename over it fails. Written before it is
        # shortened, so that no process reads an empty file.
        file.seek(0)
        file.write(new)
        file.flush()
        file.truncate()


def _without_block(lines: list[str], first: str, last: str) -> list[str]:
    kept = []
    inside = False
    for line in lines:
        inside = inside or line == first
        if not inside:
            kept.append(line)
        inside = inside and line != last
    if inside:
        raise ClusterError(
            f"{HOSTS_FILE} has {first.strip()!r} but not {last.strip()!r}: remove that block by hand"
        )
    return kept
