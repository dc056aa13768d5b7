"""Where a cluster's files lie: every file name stands here."""

import os
import shutil
import stat
import tempfile
from pathlib import Path

from ..errors import ClusterError


class StateFolder:
    """Everything that one cluster writes, apart from its lines in /etc/hosts."""

    def __init__(self, cluster_name: str) -> None:
        self.path = Path(tempfile.gettempdir()) / f"stk-cluster-{cluster_name}"
        self._etc = self.path / "etc"
        self.slurm_conf = self._etc / "slurm.conf"
        self.gres_conf = self._etc / "gres.conf"
        self.cgroup_conf = self._etc / "cgroup.conf"
        self.slurmdbd_conf = self._etc / "slurmdbd.conf"
        self.subnet = self._etc / "subnet"
        self._munge = self.path / "munge"
        self.munge_key = self._munge / "munge.key"
        self.munge_socket = self._munge / "munge.socket"
        self.database = self.path / "database"
        self.database_socket = self.path / "database.socket"
        self.database_scratch = self.path / "database.tmp"
        self.controller_state = self.path / "controller"
        self.gpus = self.path / "gpus"
        self.spool = self.path / "spool"
        self.pids = self.path / "pids"
        self.logs = self.path / "logs"

    def create(self) -> None:
        """Make the folders, readable for all because jobs of any user need slurm.conf and munge's socket."""
        self.path.mkdir(mode=0o755)
        for folder in (self._etc, self._munge, self.gpus, self.spool, self.pids, self.logs):
            folder.mkdir(mode=0o755)
        for private in (self.database, self.database_scratch, self.controller_state):
            private.mkdir(mode=0o700)

    def exists(self) -> bool:
        """Say whether the folder is there; raise ClusterError if it is neither root's nor ours."""
        try:
            found = self.path.lstat()
        except FileNotFoundError:
            return False
        # The name can be guessed and /tmp is everybody's: do not trust what another user put there.
        if not stat.S_ISDIR(found.st_mode) or found.st_uid not in (0, os.getuid()):
            raise ClusterError(
                f"{self.path} is not a folder of root, but belongs to user {found.st_uid}: "
                "remove it, or set TMPDIR to a folder of your own"
            )
        return True

    def remove(self) -> None:
        if self.exists():
            shutil.rmtree(self.path)
