"""Findings about a machine: processors, memory, limits, network, GPUs, torch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from slurm.doctor.findings import CHANGE, NOTE, OK, PROBLEM, Finding
from toolkit.system.output.amounts import counted, size_mb

Facts = Mapping[str, Any]

#: Fewer open files are not enough for many ranks that are all connected to each other.
_OPEN_FILES = 4096
_SHARED_MEMORY_MB = 1024
_SLOW_IMPORT_S = 20.0
_BUSY_PERCENT, _TAKEN = 20, 0.05


def findings(answers: Facts, elsewhere: str = "") -> Iterator[Finding]:
    """Yield findings about a machine, from the answers of `toolkit.monitoring.diagnostics`. Pure.

    elsewhere  where to look for GPUs if this machine has none
    """
    yield from _computer(answers.get("machine") or {})
    yield from _gpus(answers.get("gpus") or {}, elsewhere)
    yield from _torch(answers.get("torch") or {}, answers.get("gpus") or {})
    if why := answers.get("why"):
        yield Finding(PROBLEM, f"not everything could be asked: {why}")


def _computer(facts: Facts) -> Iterator[Finding]:
    if why := facts.get("why"):
        yield Finding(PROBLEM, f"the machine cannot be read: {why}")
    if "cpus" not in facts:
        return
    cpus, memory = facts["cpus"], facts["memory"]
    usable, online = cpus["usable"], cpus["online"]
    shown = counted(usable, "processor") if usable == online else f"{usable:,} of {online:,} processors"
    if cpus["quota"] is not None and cpus["quota"] < usable:
        shown += f", time of {cpus['quota']:g} (control group)"
    yield Finding(OK, f"{shown} to use" + (f" ({cpus['model']})" if cpus["model"] else ""))
    limit_mb = memory["limit_mb"]
    within = f"; this control group may use {size_mb(limit_mb)}" if limit_mb else ""
    found = f"{size_mb(memory['total_mb'])} of memory, {size_mb(memory['available_mb'])} free{within}"
    yield Finding(OK, found)
    yield Finding(OK, f"Python {facts['python']} at {facts['executable']}")
    yield from _limits(facts)
    yield from _network(facts["network"])


def _limits(facts: Facts) -> Iterator[Finding]:
    files = facts["limits"]["open_files"]
    if files is not None and files < _OPEN_FILES:
        follows = "raise it before the ranks start: resources.setup: ['ulimit -n 65536']"
        yield Finding(CHANGE, f"a process may open {files} files at once", follows, "resources.setup")
    else:
        yield Finding(OK, f"a process may open {files or 'any number of'} files at once")
    locked_kb = facts["limits"]["locked_memory_kb"]
    if locked_kb is not None and facts["network"]["infiniband"]:
        yield Finding(
            CHANGE,
            f"a process may lock {locked_kb} kB of memory (ulimit -l)",
            "NCCL over InfiniBand needs more: ask your site, or resources.setup: ['ulimit -l unlimited']",
            "resources.setup",
        )
    shared_mb = facts["shared_memory_mb"]
    if shared_mb is None or shared_mb < _SHARED_MEMORY_MB:
        found = "no /dev/shm" if shared_mb is None else f"/dev/shm holds {size_mb(shared_mb)}"
        follows = "NCCL needs it between the GPUs of a host; containers: --shm-size"
        yield Finding(CHANGE, found, follows, "NCCL_SHM_DISABLE")


def _network(facts: Facts) -> Iterator[Finding]:
    real = [each for each in facts["interfaces"] if each["name"] != "lo"]
    shown = ", ".join(_interface(each) for each in real)
    if not real:
        yield Finding(NOTE, "there is no network interface but loopback", "runs of one host only")
        return
    yield Finding(OK, f"network: {shown}", _ways(facts))
    own = facts["own_address"]
    if own is None or own.startswith("127."):
        found = f"this machine's own name resolves to {own or 'no address'}"
        follows = "gloo would listen there by default; a run makes it use the interface that leads to rank 0"
        yield Finding(OK, found, follows)
    for variable, value in facts["socket_ifname"].items():
        names = [each["name"] for each in facts["interfaces"]]
        # A caret excludes, an equal sign requires the whole name, otherwise a prefix is enough.
        wanted = [] if value.startswith("^") else [part.lstrip("=") for part in value.split(",")]
        if wanted and not any(name.startswith(part) for part in wanted for name in names):
            found = f"{variable}={value}, but there is no such interface here"
            follows = "the ranks will not find each other: unset it, or correct it"
            yield Finding(PROBLEM, found, follows, variable)
        else:
            yield Finding(NOTE, f"{variable}={value}", "it decides which interface is used", variable)


def _interface(facts: Facts) -> str:
    address = next((each for each in facts["addresses"] if ":" not in each), facts["addresses"][0])
    speed = f", {facts['speed_mbps'] / 1000:g} Gbit/s" if facts["speed_mbps"] else ""
    return f"{facts['name']} ({address}{speed})"


def _ways(facts: Facts) -> str:
    live = [port for port in facts["infiniband"] if port["state"] == "ACTIVE"]
    if live:
        ports = ", ".join(f"{port['name']} {port['rate']}" for port in live)
        return f"NCCL takes InfiniBand: {ports}"
    return "NCCL takes the first that is not lo or docker; NCCL_SOCKET_IFNAME chooses another"


def _gpus(facts: Facts, elsewhere: str) -> Iterator[Finding]:
    gpus = facts.get("gpus") or []
    if not gpus:
        found = facts.get("why") or "no GPU is visible"
        yield Finding(NOTE, found, elsewhere or "training here is on the CPU")
        return
    kinds = Counter((gpu["name"], gpu["memory_mb"]) for gpu in gpus)
    shown = ", ".join(f"{number} x {name} ({size_mb(memory)})" for (name, memory), number in kinds.items())
    yield Finding(OK, f"{shown}; driver {facts['driver']}, for CUDA up to {facts['cuda']}")
    for gpu in gpus:
        yield from _gpu(gpu)


def _gpu(gpu: Facts) -> Iterator[Finding]:
    name = f"GPU {gpu['index']}"
    if gpu["compute_mode"] == "prohibited":
        yield Finding(PROBLEM, f"{name} takes no work (compute mode prohibited)", "ask your site")
    elif (gpu["compute_mode"] or "").startswith("exclusive"):
        yield Finding(NOTE, f"{name} takes one process at a time (compute mode)", "one rank for each GPU")
    if gpu["slowed_by"]:
        clock = f"{gpu['clock_mhz']} of {gpu['clock_max_mhz']} MHz"
        yield Finding(NOTE, f"{name} is slowed down now by {', '.join(gpu['slowed_by'])}: {clock}")
    used, total = gpu["memory_used_mb"], gpu["memory_mb"]
    is_taken = bool(used and total and used > _TAKEN * total)
    if is_taken or (gpu["utilization"] or 0) > _BUSY_PERCENT:
        shown = f"{size_mb(used)} in use" if used is not None else "memory unknown"
        busy = "" if gpu["utilization"] is None else f", {gpu['utilization']} % busy"
        found = f"{name} is in use: {shown}{busy}"
        yield Finding(NOTE, found, "`stk run --gpus N` takes the least busy GPUs")
    if gpu["is_cut"]:
        found = f"{name} is cut into parts (MIG)"
        yield Finding(NOTE, found, "one part for each rank: NCCL cannot connect two parts of the same GPU")


def _torch(facts: Facts, gpus: Facts) -> Iterator[Finding]:
    if not facts:
        return
    if not facts.get("version"):
        why = facts.get("why") or "no reason is known"
        found = f"torch cannot be imported: {why}"
        yield Finding(PROBLEM, found, "no run starts here; is the environment active?")
        return
    parts = [f"CUDA {facts['cuda']}" if facts["cuda"] else "without CUDA"]
    parts += [f"NCCL {facts['nccl']}"] if facts["nccl"] else []
    parts += ["gloo"] if facts["has_gloo"] else []
    slow = facts["import_s"] > _SLOW_IMPORT_S
    yield Finding(
        NOTE if slow else OK,
        f"torch {facts['version']}: {', '.join(parts)}; importing it took {facts['import_s']:.1f} s",
        "each attempt of a run waits for that: is the environment on a slow file system?" if slow else "",
    )
    if not facts["has_gloo"]:
        yield Finding(PROBLEM, "this torch has no gloo", "a run of several processes needs it")
    yield from _torch_gpus(facts, len(gpus.get("gpus") or []))


def _torch_gpus(facts: Facts, there_are: int) -> Iterator[Finding]:
    for name in facts["without_code"]:
        found = f"this torch has no code for {name}"
        yield Finding(PROBLEM, found, "install a build that has: see pytorch.org", "train.device")
    if not there_are or facts["devices"]:
        return
    if facts["cuda"] is None:
        found = "there are GPUs, but this torch is built without CUDA"
        yield Finding(CHANGE, found, "install a CUDA build of torch")
    else:
        why = facts["why"] or "CUDA_VISIBLE_DEVICES hides them"
        found = f"torch can use none of the GPUs: {why}"
        yield Finding(PROBLEM, found, "often the driver is older than torch's CUDA")
