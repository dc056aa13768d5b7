"""Slurm's configuration files: what the cluster is like."""

import os
import socket
import stat
from collections.abc import Mapping
from dataclasses import dataclass

from .network import Subnet
from .state_folder import StateFolder

CPUS_PER_HOST = 8
GPUS_PER_HOST = 4
MEMORY_PER_HOST_MB = 64_000


@dataclass(frozen=True, slots=True)
class Description:
    """What the configuration files depend on."""

    name: str
    state: StateFolder
    subnet: Subnet
    addresses: Mapping[str, str]

    @property
    def login_host(self) -> str:
        """The machine's own name: slurmctld and slurmdbd refuse to start under another."""
        return socket.gethostname().partition(".")[0]


def write(cluster: Description) -> None:
    """Write all configuration files, and make the devices that stand for GPUs."""
    state = cluster.state
    sections = [_daemons(cluster), _scheduling(), _accounting(cluster), _hosts(cluster), _partitions(cluster)]
    state.slurm_conf.write_text("\n".join(sections))
    state.gres_conf.write_text(f"Name=gpu File={state.gpus}/gpu[0-{GPUS_PER_HOST - 1}]\n")
    # slurmd loads a cgroup plugin even though nothing here uses one. This one looks at nothing when it is
    # loaded; cgroup/v2 and autodetect end slurmd in a container whose cgroups are not to their taste.
    state.cgroup_conf.write_text("CgroupPlugin=cgroup/v1\n")
    # slurmdbd refuses a file that others may read.
    state.slurmdbd_conf.touch(mode=0o600)
    state.slurmdbd_conf.write_text(_slurmdbd(cluster))
    for index in range(GPUS_PER_HOST):
        # Character devices (each is a /dev/null): for plain files Slurm does not set CUDA_VISIBLE_DEVICES.
        os.mknod(state.gpus / f"gpu{index}", stat.S_IFCHR | 0o666, os.makedev(1, 3))


def _daemons(cluster: Description) -> str:
    state = cluster.state
    return f"""\
ClusterName={cluster.name}
SlurmctldHost={cluster.login_host}({cluster.subnet.login_address})
SlurmctldPort={cluster.subnet.controller_port}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CredType=cred/munge
# cred_expire is also how long a requeued job must wait (120 s by default).
AuthInfo=socket={state.munge_socket},cred_expire=5
StateSaveLocation={state.controller_state}
SlurmdSpoolDir={state.spool}/%n
SlurmctldPidFile={state.pids}/slurmctld.own
SlurmdPidFile={state.pids}/slurmd-%n.own
SlurmctldLogFile={state.logs}/slurmctld.log
SlurmdLogFile={state.logs}/slurmd-%n.log
# More CPUs than the machine has would otherwise make a host invalid.
SlurmdParameters=config_overrides
# No control of processes through cgroups: the machine may be a container.
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
MailProg=/bin/true
"""


def _scheduling() -> str:
    return """\
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=1,bf_interval=2,sched_interval=2
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
JobRequeue=1
KillWait=5
MinJobAge=300
SlurmdTimeout=10
# With it a dead host is given up after 20 s rather than 30 s.
MessageTimeout=5
ReturnToService=2
"""


def _accounting(cluster: Description) -> str:
    return f"""\
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost={cluster.subnet.login_address}
AccountingStoragePort={cluster.subnet.accounting_port}
# The munge socket for talking with slurmdbd: AuthInfo does not count there.
AccountingStoragePass={cluster.state.munge_socket}
AccountingStorageTRES=gres/gpu
"""


def _hosts(cluster: Description) -> str:
    shape = (
        f"CPUs={CPUS_PER_HOST} Sockets=1 CoresPerSocket={CPUS_PER_HOST} ThreadsPerCore=1 "
        f"RealMemory={MEMORY_PER_HOST_MB} Gres=gpu:{GPUS_PER_HOST}"
    )
    lines = [f"NodeName={host} NodeAddr={address} {shape}" for host, address in cluster.addresses.items()]
    return "\n".join(["GresTypes=gpu", *lines, ""])


def _partitions(cluster: Description) -> str:
    # Only a higher tier preempts: `main` stands level with the preemptible partitions and leaves them alone.
    return f"""\
PartitionName=DEFAULT Nodes={",".join(cluster.addresses)} MaxTime=01:00:00 State=UP
PartitionName=main Default=YES PriorityTier=1 PreemptMode=off
PartitionName=preemptible PriorityTier=1 PreemptMode=REQUEUE GraceTime=10
PartitionName=preemptible0 PriorityTier=1 PreemptMode=REQUEUE GraceTime=0
PartitionName=urgent PriorityTier=10 PreemptMode=off
"""


def _slurmdbd(cluster: Description) -> str:
    return f"""\
DbdHost={cluster.login_host}
DbdAddr={cluster.subnet.login_address}
DbdPort={cluster.subnet.accounting_port}
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={cluster.state.munge_socket}
LogFile={cluster.state.logs}/slurmdbd.log
PidFile={cluster.state.pids}/slurmdbd.own
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser=root
StorageLoc=slurm_accounting
"""
