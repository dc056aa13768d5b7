"""Whether this machine can carry the cluster."""

import os
import sys

from ..errors import ClusterError, CommandFailed
from . import packages
from .programs import output_of


class CannotRunHere(ClusterError):
    """This machine cannot carry the cluster; the message says why."""


def prepare_machine() -> None:
    """Install missing packages; raise CannotRunHere where the cluster cannot run."""
    require_linux_and_root()
    try:
        packages.install()
    except ClusterError as error:
        raise CannotRunHere(str(error)) from error
    _try_a_namespace()


def require_linux_and_root() -> None:
    if sys.platform != "linux":
        raise CannotRunHere(f"the test cluster needs Linux's network namespaces; this is {sys.platform}")
    if os.geteuid() != 0:
        raise CannotRunHere(
            f"the test cluster makes network namespaces: only root can, and this is user {os.geteuid()}"
        )


def _try_a_namespace() -> None:
    try:
        output_of(["unshare", "--net", "--uts", "--mount", "true"])
    except CommandFailed as error:
        raise CannotRunHere(
            f"root may not make namespaces here: {error.result.stderr.strip()}; a container needs "
            "`--privileged`, or the capabilities SYS_ADMIN and NET_ADMIN"
        ) from error
