"""failure.json as text for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolkit.run.failure.own_frames import OWN_FRAME
from toolkit.run.phases import Phase
from toolkit.system.output.amounts import counted, size_mb
from toolkit.system.output.sanitize import clean

#: Texts for the sizes in failure.json, by key.
_OF_A_HOST = {
    "rss_mb": "this process {}",
    "rss_peak_mb": "at most {}",
    "limit_mb": "its limit {}",
    "host_mb": "the host has {}",
}
_OF_A_GPU = {
    "allocated_mb": "allocated {}",
    "allocated_peak_mb": "at most {}",
    "reserved_mb": "reserved {}",
    "free_mb": "free {}",
    "total_mb": "of {}",
}


def format_failure(failure: Mapping[str, Any]) -> str:
    """The failure, its place, batch and memory, and what to do: a line for each."""
    message, facts = failure_facts(failure)
    return "\n".join([f"error: {message}", *(f"  {name:<10}   {text}" for name, text in facts)])


def failure_facts(failure: Mapping[str, Any]) -> tuple[str, list[tuple[str, str]]]:
    """The message, and (name, text) for each fact that the record holds."""
    # The message of an error may contain any text of the data.
    known = clean(dict(failure))
    memory = known.get("memory") or {}
    facts = (
        ("where", _where(known)),
        ("class", str(known.get("class") or "")),
        ("batch", _batch(known.get("batch") or {}, known.get("class"))),
        ("memory", _sizes(memory, _OF_A_HOST)),
        ("GPU memory", _sizes(memory.get("gpu") or {}, _OF_A_GPU)),
        ("what to do", str(known.get("advice") or "")),
    )
    return str(known.get("message", "unknown")), [(name, text) for name, text in facts if text]


def _where(failure: Mapping[str, Any]) -> str:
    gpu = failure.get("gpu") or {}
    parts = [f"rank {failure.get('rank')} on {failure.get('host')}"]
    if gpu:
        names = ", ".join(str(gpu[key]) for key in ("name", "uuid") if gpu.get(key))
        parts.append(f"GPU {gpu.get('index')}" + (f" ({names})" if names else ""))
    # `step` counts the completed steps: the failed one is the next.
    step = failure.get("step")
    parts.append(f"in {failure.get('phase')}")
    # In a program without known steps, "before step 1" would mean nothing.
    if step or failure.get("phase") != Phase.PROGRAM:
        parts.append(f"after step {step}" if step else "before step 1")
    # The traceback of a program is the end of its output, which may show another error.
    frames = OWN_FRAME.findall(str(failure.get("traceback")))
    if frames and failure.get("phase") != Phase.PROGRAM:
        parts.append("at {}:{}".format(*frames[-1]))
    return ", ".join(parts)


def _batch(batch: Mapping[str, Any], kind: Any) -> str:
    if "samples" not in batch:
        return ""
    text = counted(batch["samples"], "sample")
    # Samples without lengths have length 1.
    if batch.get("longest", 0) > 1:
        text += f", {batch['tokens']:,} tokens, the longest {batch['longest']:,}"
    if "micro_batches" not in batch:
        return text
    if kind == "diverged":
        return f"{text} (of the micro-batches without a finite loss; the step has {batch['micro_batches']:,})"
    return f"{text} (one of {batch['micro_batches']:,} micro-batches of the step)"


def _sizes(memory: Mapping[str, Any], texts: Mapping[str, str]) -> str:
    known = {key: text for key, text in texts.items() if memory.get(key) is not None}
    return ", ".join(text.format(size_mb(memory[key])) for key, text in known.items())
