"""The cluster's settings, partitions, hosts and accounts, queried once; missing answers are recorded."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from getpass import getuser
from typing import TypeVar

from slurm.client import programs
from slurm.client.account_limits import Association, Qos
from slurm.client.parse import HostUse, Partition, parse_seconds
from toolkit.errors import SchedulerError

_TIMEOUT_S = 10.0
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """The answers of a cluster; None for missing ones.

    config   the controller's settings, as printed
    uses     how busy the hosts are
    unknown  failed queries, with Slurm's message
    """

    config: Mapping[str, str]
    partitions: tuple[Partition, ...] = ()
    uses: tuple[HostUse, ...] = ()
    qos: tuple[Qos, ...] | None = None
    associations: tuple[Association, ...] | None = None
    unknown: tuple[tuple[str, str], ...] = ()

    @property
    def version(self) -> tuple[int, int]:
        """The version, such as (22, 5); zeros if it is unknown."""
        match = re.match(r"(\d+)\.(\d+)", self.config.get("SLURM_VERSION", ""))
        return (int(match[1]), int(match[2])) if match else (0, 0)

    @property
    def has_accounting(self) -> bool:
        """Whether there is a database of jobs, accounts and QOS."""
        return self.setting("AccountingStorageType") not in ("", "none")

    @property
    def kill_wait_s(self) -> int:
        """Seconds from SIGTERM to SIGKILL when a job is ended."""
        return parse_seconds(self.config.get("KillWait", ""))

    def setting(self, name: str) -> str:
        """Return the name of a plugin without its kind: cgroup for proctrack/cgroup."""
        return self.value(name).rpartition("/")[2]

    def value(self, name: str) -> str:
        """Return a setting as printed; empty if it is not set."""
        value = self.config.get(name, "")
        return "" if value in ("(null)", "N/A") else value

    def parameter(self, setting: str, name: str) -> str | None:
        """Return the value of a comma-separated parameter of a setting: empty without one, None if absent."""
        for item in self.value(setting).split(","):
            key, _, value = item.strip().partition("=")
            if key.lower() == name.lower():
                return value
        return None


def read_cluster() -> Cluster:
    """Query the controller and the accounting database. Raises SchedulerError if no controller answers.

    Makes at most five short calls; failed and late answers are recorded as unknown.
    """
    config = programs.config()
    unknown: list[tuple[str, str]] = []

    def answer_of(what: str, ask: Callable[[], Iterable[_T]]) -> tuple[_T, ...] | None:
        try:
            return tuple(ask())
        except SchedulerError as error:
            unknown.append((what, str(error).strip().splitlines()[-1].strip()))
            return None

    here = Cluster(
        config=config,
        partitions=answer_of("partitions", programs.partitions) or (),
        uses=answer_of("how busy the hosts are", lambda: programs.uses(_TIMEOUT_S)) or (),
    )
    if here.has_accounting:
        name = here.value("ClusterName")
        qos = answer_of("QOS", lambda: programs.all_qos(_TIMEOUT_S))
        rights = answer_of("your accounts", lambda: programs.associations(getuser(), name, _TIMEOUT_S))
        here = replace(here, qos=qos, associations=rights)
    return replace(here, unknown=tuple(unknown))
