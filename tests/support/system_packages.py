"""`python -m tests.support.system_packages`: install the Debian packages that the tests use, where root may.

Without root, or without apt-get, the tests that need them are skipped and say so.
"""

from __future__ import annotations

import os
import shutil
import sys

from tests.cluster.errors import ClusterError
from tests.cluster.machine import packages

_BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def missing() -> list[str]:
    """Packages of the Slurm cluster, a browser for the HTML report, shells in which Tab is pressed."""
    browser = [] if any(map(shutil.which, _BROWSERS)) else ["chromium", "fonts-dejavu-core"]
    shells = [name for name in ("zsh", "fish") if shutil.which(name) is None]
    return [*packages.missing(), *browser, *shells]


def main() -> int:
    """Install what is missing; return the exit code."""
    wanted = missing()
    if not wanted:
        return 0
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        print(f"Not installed, because only root can: {' '.join(wanted)}. Their tests will be skipped.")
        return 0
    print(f"Installing the Debian packages {' '.join(wanted)} …", flush=True)
    try:
        packages.apt_install(wanted)
    except ClusterError as error:
        print(f"error: {error}\nInstall them by hand.", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
