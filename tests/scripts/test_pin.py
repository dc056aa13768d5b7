"""The versions of packages that the project's own scripts install."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.support.registering import ROOT


def versions_in(file: Path) -> dict[str, str]:
    """Version by name, of lines `name==version`."""
    lines = [line for line in file.read_text().splitlines() if not line.startswith("#")]
    pairs = [line.partition("==") for line in lines]
    assert all(equal for _, equal, _ in pairs), lines
    return {canonicalize_name(name): version for name, _, version in pairs}


def requirements(*extras: str) -> list[Requirement]:
    project: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    found = [Requirement(text) for text in project["dependencies"]]
    wanted = list(extras)
    while wanted:
        for requirement in map(Requirement, project["optional-dependencies"][wanted.pop()]):
            # An extra may name others.
            own = requirement.name == project["name"]
            wanted += requirement.extras if own else ()
            found += [] if own else [requirement]
    return found


def test_pinned_versions_meet_the_requirements_of_the_project() -> None:
    pinned = versions_in(ROOT / "constraints.txt")
    for requirement in [*requirements("dev"), Requirement("setuptools>=77")]:
        version = pinned[canonicalize_name(requirement.name)]
        assert requirement.specifier.contains(version), requirement
    assert len(pinned) > 60, "what the packages need is pinned, too"


@pytest.mark.parametrize("which", ["lowest", "newest"])
def test_lowest_and_newest_packages_keep_the_pinned_torch(tmp_path: Path, which: str) -> None:
    script = [sys.executable, ROOT / "scripts" / "pin", f"--{which}", tmp_path / "versions.txt"]
    subprocess.run(script, check=True)
    found = versions_in(tmp_path / "versions.txt")
    assert found.pop("torch") == versions_in(ROOT / "constraints.txt")["torch"]
    bounds = {canonicalize_name(each.name): each.specifier for each in requirements("all")}
    del bounds["torch"]
    assert set(found) == (set(bounds) if which == "lowest" else set())
    assert all(f">={version}" in str(bounds[name]) for name, version in found.items())
