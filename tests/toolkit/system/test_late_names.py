"""Packages whose names are imported late have all that they promise."""

from __future__ import annotations

import subprocess
import sys
from types import ModuleType

import pytest

import toolkit.config
import toolkit.report


@pytest.mark.parametrize("package", [toolkit.config, toolkit.report])
def test_every_name_is_there_and_no_other(package: ModuleType) -> None:
    assert all(getattr(package, name) is not None for name in package.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = package.nothing


def test_a_section_costs_no_parser_of_yaml() -> None:
    imports = "import sys, toolkit.config.sections, toolkit.report.formats"
    code = f"{imports}; print({{'yaml', 'rich'}} & {{*sys.modules}})"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "set()\n"
