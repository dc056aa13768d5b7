"""The public Python API of slurm-toolkit. Everything else is internal.

    import stk

Names are imported when they are first used: `import stk` takes milliseconds and does not import torch.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from slurm.api.handle import Run as Run
    from slurm.api.handle import runs as runs
    from slurm.api.planning import Plan as Plan
    from slurm.api.planning import plan as plan
    from slurm.api.submitting import run as run
    from slurm.api.submitting import submit as submit
    from slurm.api.sweeping import sweep as sweep
    from toolkit import testing as testing
    from toolkit.analysis.prediction.load import load_model as load
    from toolkit.errors import CheckpointError as CheckpointError
    from toolkit.errors import RunCancelled as RunCancelled
    from toolkit.errors import RunFailed as RunFailed
    from toolkit.errors import SchedulerError as SchedulerError
    from toolkit.errors import UserError as UserError
    from toolkit.workload import Metric as Metric
    from toolkit.workloads.custom.functions.base import Task as Task
    from toolkit.workloads.custom.script.current_run import current_run as current_run
    from toolkit.workloads.custom.script.trainers import for_lightning as lightning
    from toolkit.workloads.custom.script.trainers import for_transformers as transformers

    # For type checkers. At run time `__getattr__` leaves out what cannot be imported.
    __all__ = [
        "CheckpointError",
        "Metric",
        "Plan",
        "Run",
        "RunCancelled",
        "RunFailed",
        "SchedulerError",
        "Task",
        "UserError",
        "current_run",
        "lightning",
        "load",
        "plan",
        "run",
        "runs",
        "submit",
        "sweep",
        "testing",
        "transformers",
    ]

#: Where each name comes from: a module, or "module:attribute".
_PLACES = {
    "CheckpointError": "toolkit.errors:CheckpointError",
    "Metric": "toolkit.workload:Metric",
    "Plan": "slurm.api.planning:Plan",
    "Run": "slurm.api.handle:Run",
    "RunCancelled": "toolkit.errors:RunCancelled",
    "RunFailed": "toolkit.errors:RunFailed",
    "SchedulerError": "toolkit.errors:SchedulerError",
    "Task": "toolkit.workloads.custom.functions.base:Task",
    "UserError": "toolkit.errors:UserError",
    "current_run": "toolkit.workloads.custom.script.current_run:current_run",
    "lightning": "toolkit.workloads.custom.script.trainers.for_lightning",
    "load": "toolkit.analysis.prediction.load:load_model",
    "plan": "slurm.api.planning:plan",
    "run": "slurm.api.submitting:run",
    "runs": "slurm.api.handle:runs",
    "submit": "slurm.api.submitting:submit",
    "sweep": "slurm.api.sweeping:sweep",
    "testing": "toolkit.testing",
    "transformers": "toolkit.workloads.custom.script.trainers.for_transformers",
}

#: Names that need a library of the same name.
_LIBRARIES = ("lightning", "transformers")


def __getattr__(name: str) -> Any:
    if name == "__all__":
        return __dir__()
    if name not in _PLACES:
        raise AttributeError(f"module 'stk' has no attribute {name!r}, only {', '.join(_PLACES)}")
    module, _, attribute = _PLACES[name].partition(":")
    try:
        found = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if name not in _LIBRARIES or str(error.name).partition(".")[0] != name:
            raise
        raise ModuleNotFoundError(f"stk.{name} needs {name}: pip install {name}", name=name) from error
    value = getattr(found, attribute) if attribute else found
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [name for name in _PLACES if name not in _LIBRARIES or _is_installed(name)]


def _is_installed(library: str) -> bool:
    if sys.modules.get(library) is not None:
        return True
    spec = importlib.util.find_spec(library)
    # A folder of this name in the working directory has no origin.
    return spec is not None and spec.origin is not None
