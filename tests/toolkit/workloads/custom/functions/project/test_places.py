"""Where the user's code is found, and which of its files a run keeps."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolkit.workloads.custom.functions.project.kept_files import not_kept, project_files
from toolkit.workloads.custom.functions.project.places import is_module, locate, root_of
from toolkit.workloads.custom.functions.reading.problems import Unfit


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name in ("digits.py", "unused.py", "helper.py", "pack/__init__.py", "pack/inner/deep.py", "far.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "digits.py").write_text("import os, helper\ndef f():\n    from pack.inner import deep\n")
    (tmp_path / "pack/inner/deep.py").write_text("import far, digits\nfrom . import more\n")
    (tmp_path / "pack/words.txt").write_text("few")
    (tmp_path / "pack/large.bin").write_bytes(bytes(1 + (1 << 20)))
    (tmp_path / "os.py").touch()
    return tmp_path


def test_only_names_of_files_and_modules_are_recognised_as_code() -> None:
    code = ["digits.py", "a/b-c.py", "my_project.digits", "a.b.c"]
    others = ["digits", "digits.yaml/", "a.b-c", ".digits", "a..b", "", "3.5"]
    assert [name for name in code + others if is_module(name)] == code


def test_a_file_is_found_in_the_first_folder_that_has_it(project: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    assert locate("digits.py", [other, project]) == project / "digits.py"
    assert locate(str(project / "digits.py"), [other]) == project / "digits.py"
    with pytest.raises(Unfit, match="other"):
        locate("none.py", [other])


def test_a_module_is_found_without_being_imported(project: Path) -> None:
    (project / "pack/__init__.py").write_text("raise SystemExit")
    assert locate("pack.inner.deep", [project]) == project / "pack/inner/deep.py"
    assert root_of("pack.inner.deep", project / "pack/inner/deep.py") == project
    (project / "pack/inner/__init__.py").touch()
    assert root_of("pack.inner", locate("pack.inner", [project])) == project
    assert locate("json.decoder", [project]).name == "decoder.py"


def test_file_that_shadows_a_standard_module_is_refused(project: Path) -> None:
    with pytest.raises(Unfit, match="file name os"):
        locate("os.py", [project])


def test_file_is_kept_with_the_modules_that_it_imports(project: Path) -> None:
    found = set(project_files("digits.py", project / "digits.py", project))
    names = ("digits.py", "helper.py", "pack/__init__.py", "pack/inner/deep.py", "pack/words.txt", "far.py")
    assert found == {project / name for name in names}


def test_small_files_that_code_reads_beside_itself_are_kept(project: Path) -> None:
    code = "import helper\nWORDS = open(os.path.join(os.path.dirname(__file__), 'words.json'))\n"
    (project / "digits.py").write_text(code + "MORE = ['large.bin', 'missing.json', 'pack', '../out.json']\n")
    (project / "helper.py").write_text("OTHER = 'other.json'\n")
    for name in ("words.json", "other.json"):
        (project / name).touch()
    (project / "large.bin").write_bytes(bytes(1 + (1 << 20)))
    found = set(project_files("digits.py", project / "digits.py", project))
    assert found == {project / name for name in ("digits.py", "helper.py", "words.json")}
    assert not_kept(found, project) == {project / "large.bin", project / "pack"}


def test_large_files_and_folders_that_a_package_reads_beside_itself_are_found(project: Path) -> None:
    deep = project / "pack/inner/deep.py"
    deep.write_text("FILES = [Path(__file__).parents[1] / 'large.bin', 'words.txt', 'inner', 'rows', '']")
    (project / "rows").mkdir()
    (project / "pack/unread.bin").write_bytes(bytes(1 + (1 << 20)))
    kept = set(project_files("pack.inner.deep", deep, project))
    assert not_kept(kept, project) == {project / "pack/large.bin", project / "rows"}


def test_large_compiled_module_of_a_package_is_kept(project: Path) -> None:
    (project / "pack/large.bin").rename(project / "pack/fast.cpython-311-x86_64-linux-gnu.so")
    found = project_files("digits.py", project / "digits.py", project)
    assert project / "pack/fast.cpython-311-x86_64-linux-gnu.so" in found


def test_hidden_files_that_a_package_reads_are_not_kept(project: Path) -> None:
    """They may hold secrets."""
    deep = project / "pack/inner/deep.py"
    deep.write_text("SECRETS = os.path.join(os.path.dirname(__file__), '.env'), '.aws/credentials'\n")
    (project / ".aws").mkdir()
    for name in (".env", ".aws/credentials"):
        (project / name).touch()
    found = {str(path.relative_to(project)) for path in project_files("pack.inner.deep", deep, project)}
    assert deep.relative_to(project).as_posix() in found
    assert not any(name.startswith(".") for name in found)


def test_data_folder_named_like_a_library_is_not_kept(project: Path) -> None:
    (project / "digits.py").write_text("import numpy, models")
    for name in ("numpy/run-1/output.txt", "models/net.py", "models/words.txt"):
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).touch()
    found = set(project_files("digits.py", project / "digits.py", project))
    assert found == {project / name for name in ("digits.py", "models/net.py", "models/words.txt")}


PACKAGE = ["pack/__init__.py", "pack/inner/deep.py", "pack/words.txt"]


@pytest.mark.parametrize(
    "name, others", [("mine", ["digits.py", "far.py", "helper.py"]), ("site-packages", [])]
)
@pytest.mark.parametrize("is_importable", [False, True])
def test_module_is_kept_with_its_package_and_what_is_not_installed_beside_it(
    name: str, others: list[str], is_importable: bool, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = project / name
    root.mkdir()
    for each in ("pack", "digits.py", "far.py", "helper.py"):
        (project / each).rename(root / each)
    if is_importable:
        monkeypatch.syspath_prepend(root)
    found = project_files("pack.inner.deep", root / "pack/inner/deep.py", root)
    assert sorted(str(path.relative_to(root)) for path in found) == sorted([*PACKAGE, *others])
