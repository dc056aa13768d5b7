"""stk diff"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator, Sequence
from dataclasses import asdict

from toolkit.analysis.diff import Difference, compare
from toolkit.exit_codes import ExitCode
from toolkit.run.run_dir import find_run
from toolkit.system.output.amounts import counted
from toolkit.system.output.json_text import json_text

#: Largest number of files and keys shown of each kind; --json has all.
_SHOWN = 12

_WITHOUT_CAUSE = (
    "None of that explains it. The remaining causes are rounding (train.reduction fast, a number of",
    "processes that is not a power of two, another kind of processor) and a faulty processor.",
)
_CODE = (("changed", "differs"), ("only_first", "only in A"), ("only_second", "only in B"))


def run(arguments: Namespace) -> int:
    """Show where two runs differ; return 0 if all steps that both have are equal, else 1."""
    one, other = find_run(arguments.run), find_run(arguments.other)
    found = compare(one, other)
    if arguments.json:
        print(json_text({"equal": found.is_equal, **asdict(found)}))
    else:
        print("\n".join(_render(found)))
    return ExitCode.DONE if found.is_equal else ExitCode.DIFFERENT


def _render(found: Difference) -> Iterator[str]:
    for letter, name, steps, machines in zip("AB", found.runs, found.steps, found.trained_on, strict=True):
        where = ", then ".join(machines) or "unknown machines"
        yield f"{letter}  {name}: {counted(steps, 'step')}, trained on {where}"
    yield ""
    yield from _render_steps(found)
    yield from _render_weights(found)
    yield from _render_causes(found)
    if found.first is not None:
        yield ""
        yield "to see that step:"
        yield from (f"  stk replay {name} --step {found.first.step}" for name in found.runs)


def _render_steps(found: Difference) -> Iterator[str]:
    first = found.first
    if first is None:
        yield f"EQUAL in all {found.compared} steps that both have: the same samples, the same loss exactly."
        if found.steps[0] != found.steps[1]:
            yield f"{'A' if found.steps[0] > found.steps[1] else 'B'} has more steps."
        return
    equal = {1: "the very first", 2: "after 1 equal one"}.get(
        first.step, f"after {first.step - 1} equal ones"
    )
    if first.what == "samples":
        yield f"DIFFERENT from step {first.step} on, {equal}: they read other samples."
        yield f"  samples       A {first.samples[0]}   B {first.samples[1]}"
    else:
        yield f"DIFFERENT from step {first.step} on, {equal}: the same samples, but another loss."
    a, b = first.loss
    apart = abs(a - b) / max(abs(a), abs(b), 1e-300)
    yield f"  loss, summed  A {a!r}   B {b!r}   (apart by {apart:.1e} of it)"


def _render_weights(found: Difference) -> Iterator[str]:
    saves = counted(found.saves, "save")
    if found.saves == 0:
        yield "The runs have no save in common, so no weights were compared."
    elif found.weights is None:
        yield f"Weights are equal, byte for byte, in {saves} that both made."
    else:
        yield f"Weights differ from the save of step {found.weights} on; both made {saves}."


def _render_causes(found: Difference) -> Iterator[str]:
    """Yield the possible causes of a difference, and the causes that are excluded."""
    yield ""
    yield from _block("config", [f"{key}: A {a!r}, B {b!r}" for key, (a, b) in found.config.items()])
    yield from _block("code", [f"{name} {what}" for kind, what in _CODE for name in found.code[kind]])
    a, b = ("; ".join(each) or "none" for each in found.new_code)
    yield from _block("new code", _pair((a, b)))
    yield from _block("data", _pair(found.data))
    yield from _block("torch", _pair(found.torch))
    yield from _block("quarantine", _pair(found.quarantine))
    # Names and resources do not change results.
    keys = [key for key in found.config if key != "name" and not key.startswith("resources.")]
    pairs = (found.data, found.torch, found.quarantine, found.new_code)
    has_cause = bool(keys) or any(found.code.values()) or any(a != b for a, b in pairs)
    if not found.is_equal and not has_cause:
        yield ""
        yield from _WITHOUT_CAUSE


def _pair(values: tuple[object, object]) -> list[str]:
    a, b = values
    return [] if a == b else [f"A {a or 'not known'}, B {b or 'not known'}"]


def _block(title: str, lines: Sequence[str]) -> Iterator[str]:
    if not lines:
        yield f"{title:<11} the same"
        return
    for place, line in enumerate(lines[:_SHOWN]):
        yield f"{title if place == 0 else '':<11} {line}"
    if len(lines) > _SHOWN:
        yield f"{'':<11} … and {len(lines) - _SHOWN} more (--json shows all)"
