"""Packages with lazily imported names provide every name in __all__."""

from __future__ import annotations

import subprocess
import sys
from types import ModuleType

import pytest

import toolkit.config
import toolkit.report


@pytest.mark.parametrize("package", [toolkit.config, toolkit.report])
def test_every_lazy_name_exists_and_unknown_names_raise(package: ModuleType) -> None:
    assert all(getattr(package, name) is not None for name in package.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = package.nothing


def test_importing_sections_and_formats_imports_neither_yaml_nor_rich() -> None:
    imports = "import sys, toolkit.config.sections, toolkit.report.formats"
    code = f"{imports}; print({{'yaml', 'rich'}} & {{*sys.modules}})"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "set()\n"
