"""The variable of matplotlib that can prevent its import."""

from __future__ import annotations

import os
from importlib.util import find_spec

_MODULE = "module://"


def forget_missing_backend() -> None:
    """Remove MPLBACKEND if it names a module that is not installed: matplotlib could not be imported.

    A notebook sets it, and commands and jobs of other environments inherit it.
    """
    name = os.environ.get("MPLBACKEND", "")
    if name.startswith(_MODULE) and find_spec(name.removeprefix(_MODULE).partition(".")[0]) is None:
        del os.environ["MPLBACKEND"]
