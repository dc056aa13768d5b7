"""Where a cluster's files lie: every file name is a property here."""

import os
import shutil
import stat
import tempfile
from dataclasses import dataclass
from pathlib import Path

from ..errors import ClusterError


@dataclass(frozen=True, slots=True)
class StateFolder:
    """Everything that one cluster writes, apart from its lines in /etc/hosts."""

    cluster_name: str

    @property
    def path(self) -> Path:
        return Path(tempfile.gettempdir()) / f"stk-cluster-{self.cluster_name}"

    @property
    def slurm_conf(self) -> Path:
        return self.path / "etc" / "slurm.conf"

    @property
    def gres_conf(self) -> Path:
        return self.path / "etc" / "gres.conf"

    @property
    def cgroup_conf(self) -> Path:
        return self.path / "etc" / "cgroup.conf"

    @property
    def slurmdbd_conf(self) -> Path:
        return self.path / "etc" / "slurmdbd.conf"

    @property
    def subnet(self) -> Path:
        return self.path / "etc" / "subnet"

    @property
    def munge_key(self) -> Path:
        return self.path / "munge" / "munge.key"

    @property
    def munge_socket(self) -> Path:
        return self.path / "munge" / "munge.socket"

    @property
    def database(self) -> Path:
        return self.path / "database"

    @property
    def database_socket(self) -> Path:
        return self.path / "database.socket"

    @property
    def database_scratch(self) -> Path:
        return self.path / "database.tmp"

    @property
    def controller_state(self) -> Path:
        return self.path / "controller"

    @property
    def gpus(self) -> Path:
        return self.path / "gpus"

    @property
    def spool(self) -> Path:
        return self.path / "spool"

    @property
    def pids(self) -> Path:
        return self.path / "pids"

    @property
    def logs(self) -> Path:
        return self.path / "logs"

    def create(self) -> None:
        """Make the folders, readable for all because jobs of any user need slurm.conf and munge's socket."""
        self.path.mkdir(mode=0o755)
        etc, munge = self.slurm_conf.parent, self.munge_key.parent
        for folder in (etc, munge, self.gpus, self.spool, self.pids, self.logs):
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
