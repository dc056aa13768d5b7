"""`stk init` writes a project that works."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from jsonschema import Draft202012Validator

from tests.toolkit.workloads.moved_run import ended
from toolkit.config import load
from toolkit.errors import UserError
from toolkit.workloads.custom.commands.init import files_of, starters

ROOT = Path(__file__).parents[5]
EXAMPLE = ROOT / "examples" / "digits"


def without_schema(text: str) -> str:
    """The text of an experiment without its first line for editors: its schema may lie in another place."""
    return re.sub(r"\A# yaml-language-server: .*\n", "", text)


@pytest.mark.slow
def test_init_writes_an_example_that_passes_its_own_test(tmp_path: Path) -> None:
    done = ended("init", "mine", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    written = {path.name: path.read_text() for path in (tmp_path / "mine").iterdir()}
    for name in ("digits.py", "digits.yaml", "test_digits.py"):
        assert without_schema(written[name]) == without_schema((EXAMPLE / name).read_text()), name
    load(tmp_path / "mine" / "digits.yaml")
    test = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_digits.py"]
    passed = subprocess.run(test, cwd=tmp_path / "mine", capture_output=True, text=True)
    assert passed.returncode == 0, passed.stdout


def test_written_experiment_names_an_existing_schema_and_is_valid_by_it(tmp_path: Path) -> None:
    assert ended("init", cwd=tmp_path).returncode == 0
    text = (tmp_path / "digits" / "digits.yaml").read_text()
    name = text.splitlines()[0].partition("# yaml-language-server: $schema=")[2]
    valid = Draft202012Validator(json.loads((tmp_path / "digits" / name).read_text())).is_valid
    assert valid(yaml.safe_load(text))
    assert not valid({**yaml.safe_load(text), "trian": {}})
    assert not valid({**yaml.safe_load(text), "model": {"hiden": 128}})


def test_init_does_not_overwrite_files(tmp_path: Path) -> None:
    (tmp_path / "digits").mkdir()
    (tmp_path / "digits" / "digits.yaml").write_text("mine")
    done = ended("init", cwd=tmp_path)
    assert done.returncode == 2
    assert "digits.yaml" in done.stderr
    assert [path.read_text() for path in (tmp_path / "digits").iterdir()] == ["mine"]


def test_the_next_command_is_one_for_the_shell(tmp_path: Path) -> None:
    last = ended("init", "a b/it's", cwd=tmp_path).stdout.splitlines()[-1]
    assert shlex.split(last)[1:] == ["cd", "a b/it's", "&&", "stk", "run", "digits.yaml"]


def test_shipped_experiment_is_written_with_its_included_files(tmp_path: Path) -> None:
    done = ended("init", "--from", "quickstart", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    written = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.yaml")}
    assert written == {"quickstart/quickstart.yaml", "quickstart/model/docnn.yaml"}
    theirs, ours = (
        load(folder / "quickstart.yaml") for folder in (tmp_path / "quickstart", ROOT / "configs")
    )
    assert (theirs.model, theirs.train) == (ours.model, ours.train)


@pytest.mark.parametrize("name", starters())
def test_every_included_file_of_a_shipped_experiment_is_written(name: str) -> None:
    files = files_of(name)
    written = {path for text in files.values() for path in re.findall(r"from_file:([^${}]+)\}", text)}
    assert written <= set(files)
    assert not any("$schema" in text for text in files.values())


def test_unknown_experiment_is_refused_with_the_known_names() -> None:
    with pytest.raises(UserError, match="quickstart, "):
        files_of("quickstrat")


def test_wheel_has_every_folder_of_shipped_experiments() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    inside = {
        pattern for patterns in project["tool"]["setuptools"]["data-files"].values() for pattern in patterns
    }
    folders = {path.parent.relative_to(ROOT) for path in (ROOT / "configs").rglob("*.yaml")}
    assert {f"{folder}/*.yaml" for folder in folders} <= inside
