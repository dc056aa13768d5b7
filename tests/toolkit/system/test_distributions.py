"""Installed distributions and their entry points are found as importlib.metadata finds them."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path

from toolkit.system.distributions import distribution, entry_points

ROOT = Path(__file__).parents[3]
_TELL = """\
from toolkit.system.distributions import entry_points
for point in entry_points():
    if point.group == "animals":
        print(point.name, point.code, point.distribution.field("Name"), point.distribution.field("Version"))
"""


def _install(site: Path, folder: str, metadata_file: str, entry_points: str) -> None:
    (site / folder).mkdir(parents=True)
    (site / folder / metadata_file).write_text("Metadata-Version: 2.1\nName: Zoo-Of\nVersion: 1.5\n")
    (site / folder / "entry_points.txt").write_text(entry_points)


def _animals(*sites: Path) -> list[str]:
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (*sites, ROOT)))}
    done = subprocess.run(
        [sys.executable, "-c", _TELL], env=environ, capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines()


def test_entry_points_equal_those_of_importlib() -> None:
    ours = {(point.group, point.name, point.code) for point in entry_points()}
    groups = {point.group for each in metadata.distributions() for point in each.entry_points}
    theirs = {
        # Names of extras, which a few have, are not ours to read.
        (each.group, each.name, each.value.partition("[")[0].strip())
        for group in groups
        for each in metadata.entry_points(group=group)
    }
    assert ours == theirs
    assert ("slurm_toolkit.sections", "resources", "slurm.config.section:RESOURCES") in ours


def test_name_and_version_equal_those_of_importlib() -> None:
    ours, theirs = distribution("slurm-toolkit"), metadata.distribution("slurm-toolkit")
    assert (ours.field("Name"), ours.field("Version")) == (theirs.name, theirs.version)


def test_an_empty_path_entry_is_the_initial_working_directory(tmp_path: Path) -> None:
    _install(tmp_path, "zoo_of-1.5.dist-info", "METADATA", "[animals]\ndog = zoo:Dog\n")
    look = "import os\nfrom toolkit.system.distributions import entry_points\nentry_points()\nos.chdir('/')\n"
    code = look + _TELL
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    told = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environ, capture_output=True, text=True
    )
    assert told.stdout == "dog zoo:Dog Zoo-Of 1.5\n", told.stderr


def test_comments_and_extras_are_left_out(tmp_path: Path) -> None:
    text = "# what lives here\n[other]\nlion = a:B\n\n[animals]\ncat=zoo.cats:Cat.purr\ndog = zoo:Dog [big]\n"
    _install(tmp_path, "zoo_of-1.5.dist-info", "METADATA", text)
    assert _animals(tmp_path) == ["cat zoo.cats:Cat.purr Zoo-Of 1.5", "dog zoo:Dog Zoo-Of 1.5"]


def test_the_first_distribution_on_the_path_hides_later_ones_of_its_name(tmp_path: Path) -> None:
    _install(tmp_path / "first", "zoo_of.egg-info", "PKG-INFO", "[animals]\ncat = new:Cat\n")
    _install(tmp_path / "second", "Zoo.Of-1.0.dist-info", "METADATA", "[animals]\ncat = old:Cat\n")
    assert _animals(tmp_path / "first", tmp_path / "second") == ["cat new:Cat Zoo-Of 1.5"]
