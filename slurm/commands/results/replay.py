"""stk replay"""

from __future__ import annotations

import json
import os
import subprocess
from argparse import Namespace
from collections.abc import Iterator, Mapping
from typing import Any

from slurm.commands.common import warn
from slurm.commands.run_snapshot import processes
from toolkit.analysis.diff import trained_on
from toolkit.errors import RunFailed, UserError
from toolkit.exit_codes import ExitCode
from toolkit.run.attempts.records import read_attempts
from toolkit.run.kept_code.edited_code import new_code_of
from toolkit.run.kept_code.module_names import module_in
from toolkit.run.records.step_records import check_step
from toolkit.run.run_dir import RunDir, find_run
from toolkit.system.output.amounts import counted
from toolkit.system.output.json_text import json_text

_MODULE = "toolkit.analysis.replay"
#: Samples of each micro-batch that are shown; --json has all.
_SAMPLES = 4
_WIDTH = 100

_VERDICTS = {
    "exact": "equal to its record: the same samples, and the same loss to the last bit",
    "rounding": "equal to its record within rounding",
    "other_samples": "DIFFERENT from its record: the record has other samples, so the data have changed",
    "other_loss": "DIFFERENT from its record: the same samples, but another loss",
    "other_device": "not comparable: the step was trained on another kind of device",
    "no_receipt": "the run has no record of this step, so there is nothing to compare with",
}
_DIFFERENT = ("other_samples", "other_loss")


def run(arguments: Namespace) -> int:
    """Recompute a step and show it; return 1 if it differs from its record."""
    target = find_run(arguments.run)
    check_step(target, arguments.step)
    answer = _compute(target, arguments.step)
    answer["trained_on"] = trained_on(target)
    devices = [each.device for each in read_attempts(target) if each.device and each.includes(answer["step"])]
    if answer["verdict"] == "other_loss" and devices and devices[-1] != answer["device"]:
        # Another kind of device computes in another precision, with other random numbers.
        answer["verdict"] = "other_device"
    answer["new_code"] = new_code_of(target, arguments.step)
    if answer["new_code"]:
        taken = "; ".join(answer["new_code"])
        before = f"step {answer['step']} was trained before the run took new code ({taken})"
        warn([f"{before}, and was computed again with the new code"])
    if arguments.json:
        print(json_text(answer))
    else:
        print("\n".join(_render(answer)))
    return ExitCode.DIFFERENT if answer["verdict"] in _DIFFERENT else ExitCode.DONE


def _compute(target: RunDir, step: int) -> dict[str, Any]:
    """Recompute the step in a process with torch and the run's own code; return its answer."""
    if target.code.exists() and module_in(target, _MODULE) is None:
        raise UserError(f"{target.code} is older than `stk replay`: the run's own code cannot do it")
    ((command, environment),) = processes(target, _MODULE, str(step))
    done = subprocess.run(
        command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=False
    )
    if done.returncode == ExitCode.WRONG_INPUT:
        raise SystemExit(done.returncode)
    if done.returncode != 0:
        raise RunFailed(f"step {step} of {target.run_id} could not be replayed (see above)")
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def _render(answer: Mapping[str, Any]) -> Iterator[str]:
    yield f"step {answer['step']} of {answer['total_steps']}, {answer['run_id']}, epoch {answer['epoch']}"
    begun = f"checkpoint {answer['checkpoint']}" if answer["checkpoint"] else "the beginning"
    between = f", {counted(answer['recomputed'], 'step')} in between" if answer["recomputed"] else ""
    yield f"  computed from     {begun}{between}, on {answer['device']}"
    yield f"  trained on        {', then '.join(answer['trained_on']) or 'nothing yet'}"
    if answer["lr"] is not None:
        yield f"  learning rate     {answer['lr']:.6g}"
    if answer["loss"] is not None:
        mean = answer["loss"] / answer["count"] if answer["count"] else 0.0
        yield f"  loss              {answer['loss']!r} over {answer['count']:.12g}, mean {mean:.6g}"
    samples = sum(len(part["samples"]) for part in answer["micro_batches"])
    yield f"  samples           {samples}, checksum {answer['samples']}"
    if answer["left_out"]:
        yield f"  in quarantine     samples {', '.join(map(str, answer['left_out']))}"
    yield from _render_verdict(answer)
    for part in answer["micro_batches"]:
        yield from _render_part(part)


def _render_verdict(answer: Mapping[str, Any]) -> Iterator[str]:
    receipt, error = answer["receipt"], answer["error"]
    yield f"  compared          {_VERDICTS[answer['verdict']]}"
    if receipt is not None and answer["verdict"] != "exact":
        yield f"  record            loss {receipt['loss']!r}, samples {receipt['samples']}"
    if error is not None:
        yield f"\nthis step fails in {error['phase']}: {error['message']}"
        yield from error["traceback"].splitlines()
        if error["samples"]:
            yield f"micro-batch at work: samples {', '.join(map(str, error['samples']))}"


def _render_part(part: Mapping[str, Any]) -> Iterator[str]:
    samples = part["samples"]
    loss = "not computed" if part["loss"] is None else f"loss {float(part['loss']):.6g}"
    yield f"\nmicro-batch {part['micro_batch']}: {loss if samples else 'empty'}"
    for sample in samples[:_SAMPLES]:
        place = f"  {os.path.basename(sample['file'])}:{sample['line']}" if sample["file"] else ""
        label = f"  [{sample['label']}]" if sample["label"] else ""
        text = f"{sample['sample']:>8}{place}{label}  {' '.join(sample['text'].split())}".rstrip()
        yield f"  {text if len(text) <= _WIDTH else text[: _WIDTH - 1] + '…'}"
    if len(samples) > _SAMPLES:
        yield f"  … and {len(samples) - _SAMPLES} more (--json shows all)"
