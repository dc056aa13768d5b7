"""Where the cluster's own programs are looked for, and the environment in which they run."""

import os
import shutil
import subprocess
from collections.abc import Sequence

from ..errors import CommandFailed

# Root's PATH need not hold the folders of the daemons, for example after `su`.
SEARCH_PATH = os.pathsep.join([os.environ.get("PATH", ""), "/usr/local/sbin", "/usr/sbin", "/sbin"])

# Nothing else of the caller's environment: a daemon would hand it on to the jobs.
CLEAN_ENVIRONMENT = {"PATH": SEARCH_PATH, "LANG": "C.UTF-8"}


def is_installed(program: str) -> bool:
    return shutil.which(program, path=SEARCH_PATH) is not None


def output_of(command: Sequence[str]) -> str:
    """Run `command` to its end; raise CommandFailed on another exit code than 0."""
    result = subprocess.run(command, env=CLEAN_ENVIRONMENT, cwd="/", capture_output=True, text=True)
    if result.returncode != 0:
        raise CommandFailed(result)
    return result.stdout
