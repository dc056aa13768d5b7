"""Modules that a launcher starts with a run's own code: that code may be of an earlier version."""

from __future__ import annotations

from toolkit.run.run_dir import RunDir

#: Names that a module had in earlier versions, the newest first.
_EARLIER = {
    "slurm.job.decide_restart": ("slurm.job.after_step", "slurm.after_step"),
    "toolkit.analysis.reevaluate": ("toolkit.rescore",),
    "toolkit.analysis.replay": ("toolkit.replay",),
    "toolkit.launch.rank_main": ("toolkit.rank", "toolkit.worker"),
}


def module_in(run: RunDir, name: str, *earlier: str) -> str | None:
    """The name of a current module in a run's own code; None if that code lacks it.

    earlier   names of a workload's module in earlier versions, the newest first
    """
    names = (name, *earlier, *_EARLIER.get(name, ()))
    return next((each for each in names if run.has_code(each)), None)
