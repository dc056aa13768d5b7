"""Stubs of Slurm's programs that answer at once, so that Slurm's own time is not measured."""

from __future__ import annotations

import os
from pathlib import Path

#: A line of sinfo's output in the format of `slurm.client.parse`.
_HOSTS = "\x1f".join(("main", "16", "64000", "(null)", "(null)", "node[01-04]"))
_PARTITION = (
    "PartitionName=main AllowAccounts=ALL AllowQos=ALL Default=YES GraceTime=60 MaxNodes=UNLIMITED "
    "MaxTime=2-00:00:00 MinNodes=0 Nodes=node[01-04] PreemptMode=REQUEUE State=UP TotalCPUs=64 TotalNodes=4"
)
#: A job's id is the stub's process number.
_BODIES = {
    "sbatch": 'case "$*" in *--parsable*) echo "$$";; *) echo "Submitted batch job $$";; esac',
    "scontrol": f"""case "$*" in
ping) echo "Slurmctld(primary) at head is UP";;
*config) echo "MaxArraySize = 100001";;
*partition) echo "{_PARTITION}";;
esac""",
    "sinfo": f"echo '{_HOSTS}'",
    "squeue": 'exec cat "${0%/*}/queue"',
    "sacct": "",
    "srun": "",
}


class Stubs:
    """The programs in a folder, which count how often they are called.

    queue   what squeue prints
    """

    def __init__(self, folder: Path, queue: str = "") -> None:
        folder.mkdir(parents=True)
        self._folder = folder
        for name, body in _BODIES.items():
            (folder / name).write_text(f'#!/bin/sh\necho {name} >> "${{0%/*}}/calls"\n{body}\n')
            (folder / name).chmod(0o755)
        (folder / "queue").write_text(queue)
        self.forget()

    @property
    def variables(self) -> dict[str, str]:
        """The environment variables with which the stubs are found."""
        return {"PATH": os.pathsep.join([str(self._folder), os.environ["PATH"]])}

    def forget(self) -> None:
        """Reset the count."""
        self._calls.write_text("")

    def count(self, *names: str) -> int:
        """Return how often these programs were called; without names, all programs."""
        called = self._calls.read_text().splitlines()
        return sum(name in names for name in called) if names else len(called)

    @property
    def _calls(self) -> Path:
        return self._folder / "calls"
