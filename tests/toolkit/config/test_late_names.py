"""`toolkit.config` imports its names lazily, and has every name in __all__."""

from __future__ import annotations

import subprocess
import sys

import pytest

import toolkit.config


def test_every_lazy_name_exists_and_unknown_names_raise() -> None:
    assert all(getattr(toolkit.config, name) is not None for name in toolkit.config.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = toolkit.config.nothing


def test_importing_sections_and_formats_imports_neither_yaml_nor_rich() -> None:
    imports = "import sys, toolkit.config.sections, toolkit.report.formats"
    code = f"{imports}; print({{'yaml', 'rich'}} & {{*sys.modules}})"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "set()\n"
