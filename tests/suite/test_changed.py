"""Which tests a change concerns."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.suite.changed import changed_files, concerned_tests

_TREE = {
    "toolkit/__init__.py": "",
    "toolkit/low.py": "",
    "toolkit/middle.py": "from toolkit import low\n",
    "toolkit/high.py": "import toolkit.middle\n",
    "toolkit/alone.py": "",
    "toolkit/lazy.py": "",
    "toolkit/user_of_lazy.py": "TASK = 'toolkit.lazy:Task'\n",
    "configs/some.yaml": "",
    "tests/toolkit/test_low.py": "from toolkit.low import (\n    x,\n)\n",
    "tests/toolkit/test_middle.py": "from toolkit.middle import x\n",
    "tests/toolkit/test_high.py": "from toolkit import high\n",
    "tests/toolkit/test_alone.py": "",
    "tests/toolkit/test_user.py": "from toolkit.user_of_lazy import TASK\n",
    "tests/toolkit/test_configs.py": "load('configs/some.yaml')\n",
    "tests/slurm/conftest.py": "",
    "tests/slurm/test_submit.py": "",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name, text in _TREE.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    for words in (
        ("init", "--quiet", "--initial-branch=main"),
        ("add", "."),
        ("-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "--quiet", "--message=all"),
    ):
        subprocess.run(("git", *words), cwd=tmp_path, check=True)
    return tmp_path


@pytest.mark.parametrize(
    "changed, concerned",
    [
        ("toolkit/low.py", ["test_low", "test_middle"]),
        ("toolkit/middle.py", ["test_middle", "test_high"]),
        ("toolkit/alone.py", ["test_alone"]),
        ("toolkit/lazy.py", ["test_user"]),
        ("configs/some.yaml", ["test_configs"]),
        ("tests/slurm/conftest.py", ["test_submit"]),
        ("tests/toolkit/test_low.py", ["test_low"]),
        ("README.md", []),
    ],
)
def test_concerned_tests_import_or_mention_the_change_nearest_first(
    root: Path, changed: str, concerned: list[str]
) -> None:
    assert [Path(name).stem for name in concerned_tests(root, [changed])] == concerned


def test_changed_files_are_modified_or_new_since_main(root: Path) -> None:
    assert changed_files(root) == set()
    subprocess.run(("git", "checkout", "--quiet", "-b", "next"), cwd=root, check=True)
    (root / "toolkit/low.py").write_text("x = 1\n")
    (root / "toolkit/new.py").write_text("")
    assert changed_files(root) == {"toolkit/low.py", "toolkit/new.py"}
