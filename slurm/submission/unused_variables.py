"""Variables that sbatch would read as options. A run does not depend on the shell that submits it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from slurm.config.resources import Resources
from slurm.submission.allowed_options import OTHERS, SAME_NAME

_PREFIX = "SBATCH_"
#: Options whose variable has another name.
_NAMES = {"TIMELIMIT": "time", "MEM_PER_NODE": "mem", "CONSTRAINT": "constraint", "MEM": "mem"}


def unused_variables(resources: Resources, environ: Mapping[str, str]) -> Iterator[str]:
    """A line for each variable SBATCH_… that sets what the experiment leaves open, with the key for it."""
    for variable in sorted(environ):
        name = variable.removeprefix(_PREFIX)
        if name == variable or not name:
            continue
        key = _NAMES.get(name, name.lower())
        option = key.replace("_", "-")
        value = environ[variable]
        if key in SAME_NAME:
            if getattr(resources, key) in (None, False):
                yield f"{variable} is {value!r} and is not used: set resources.{key}"
        elif option in OTHERS:
            if not {key, option} & set(resources.sbatch):
                yield f"{variable} is {value!r} and is not used: set resources.sbatch.{option}"
        else:
            yield f"{variable} is {value!r} and is not used: the experiment and the run say that"
