"""The programs that the cluster is made of, and the Debian packages that bring them."""

import os
import subprocess
import time
from collections.abc import Sequence

from ..errors import ClusterError
from .programs import SEARCH_PATH, is_installed

#: Seconds to wait for the locks of apt: a new machine may be installing updates of its own.
_LOCKED_S = 600

PACKAGE_OF = {
    "slurmctld": "slurm-wlm",
    "slurmd": "slurm-wlm",
    "sbatch": "slurm-wlm",
    "slurmdbd": "slurmdbd",
    "munged": "munge",
    "mariadbd": "mariadb-server",
    "mariadb-install-db": "mariadb-server",
    "ip": "iproute2",
    "nsenter": "util-linux",
    "unshare": "util-linux",
    "hostname": "hostname",
}


def missing() -> list[str]:
    """Return the packages whose programs are not on this machine."""
    return sorted({package for program, package in PACKAGE_OF.items() if not is_installed(program)})


def install() -> None:
    """Install what is missing with apt-get; raise ClusterError where that is not possible.

    Whether apt starts the packages' services is left to the machine: the cluster starts its own, uses none of
    the machine's.
    """
    wanted = missing()
    if not wanted:
        return
    if os.geteuid() != 0 or not is_installed("apt-get"):
        raise ClusterError(f"missing Debian packages: {' '.join(wanted)}; install them with apt-get as root")
    apt_install(wanted)
    if missing():
        raise ClusterError(
            f"apt-get installed {' '.join(wanted)}, but programs of {' '.join(missing())} are not found"
        )


def apt_install(wanted: Sequence[str]) -> None:
    """Install Debian packages as root; raise ClusterError with the end of apt-get's output if that fails."""
    _apt_get("update")
    _apt_get("install", "-y", "--no-install-recommends", *wanted)


def _apt_get(*arguments: str) -> None:
    deadline = time.monotonic() + _LOCKED_S
    while True:
        result = subprocess.run(
            ["apt-get", "-q", f"-o=DPkg::Lock::Timeout={_LOCKED_S}", *arguments],
            env=os.environ | {"PATH": SEARCH_PATH, "LC_ALL": "C", "DEBIAN_FRONTEND": "noninteractive"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
        # `update` takes the lock of the package lists. apt has no option to wait for that lock, and no event
        # tells that it is free, so ask again. Nothing is asserted here.
        if "Could not get lock" not in result.stderr or time.monotonic() > deadline:
            break
        time.sleep(2)
    if result.returncode != 0:
        tail = "\n".join((result.stdout + result.stderr).splitlines()[-15:])
        raise ClusterError(f"apt-get {' '.join(arguments)} failed (exit code {result.returncode}):\n{tail}")
