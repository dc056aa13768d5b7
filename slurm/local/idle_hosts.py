"""Hosts of an allocation that nothing of a run uses."""

from __future__ import annotations

from collections.abc import Mapping

from slurm.client.hostlist import expand
from toolkit.errors import UserError

_HOSTS = "SLURM_JOB_NODELIST"


def told_idle(environ: Mapping[str, str]) -> str:
    """Return a message if a job has several hosts and a run uses only this one; empty if it has one."""
    # The components of an uneven job, or else the only one.
    lists = [environ[name] for name in sorted(environ) if name.startswith(f"{_HOSTS}_HET_GROUP_")]
    try:
        hosts = [host for each in lists or [environ.get(_HOSTS, "")] for host in expand(each)]
    except UserError:
        return ""
    if "SLURM_JOB_ID" not in environ or len(hosts) < 2:
        return ""
    return (
        f"job {environ['SLURM_JOB_ID']} has {len(hosts)} hosts ({', '.join(hosts)}), and this run takes one "
        "of them: the others are idle. `srun stk run …`, with the same arguments, trains on all of them"
    )
