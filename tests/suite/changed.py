"""Which test files a change concerns: those that import what has changed, directly or through another module.

Where there are none, the nearest. Most modules are reached by every training, and so by most tests; the whole
suite is for those. A module that is named in a string, as task declarations and entry points do, counts as
imported. A change to a file that is no module, a YAML file or a script, concerns the tests that mention it.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

#: A test that imports what has changed is one step away.
_STEPS = 2
_PACKAGES = ("toolkit", "slurm", "benchmarks", "tests")
_FROM = re.compile(r"^\s*from\s+(\.*)([\w.]*)\s+import\s+(\([^)]*\)|[^\n]+)", re.MULTILINE)
_IMPORT = re.compile(r"^\s*import\s+([\w.]+)", re.MULTILINE)
_NAMED = re.compile(rf"[\"']((?:{'|'.join(_PACKAGES)})(?:\.\w+)+)(?::\w+)?[\"']")


def changed_files(root: Path, base: str = "main") -> set[str]:
    """Files that differ from where this branch left `base`, committed or not; new ones too."""
    (start,) = _git(root, "merge-base", base, "HEAD")
    listed = _git(root, "diff", "--name-only", start)
    return {*listed, *_git(root, "ls-files", "--others", "--exclude-standard")}


def concerned_tests(root: Path, changed: Iterable[str]) -> list[str]:
    """Test files that the change concerns, the nearest first."""
    tree = {name: (root / name).read_text(encoding="utf-8") for name in _python_files(root)}
    importers = _importers(tree)
    found = {name: steps for each in changed for name, steps in _concerned(each, tree, importers).items()}
    return sorted(found, key=lambda name: (found[name], name))


def _concerned(changed: str, tree: Mapping[str, str], importers: Mapping[str, set[str]]) -> dict[str, int]:
    """Test files that one changed file concerns, and how far off each is."""
    found = {test: 0 for test in tree if _is_mirror(test, changed)}
    seen: set[str] = set()
    reached, steps = {changed}, 0
    while reached and (steps <= _STEPS or not found):
        seen |= reached
        for name in filter(_is_test, reached):
            found.setdefault(name, steps)
        reached = {other for name in reached for other in _next(name, tree, importers)} - seen
        steps += 1
    return {name: steps for name, steps in found.items() if name in tree}


def _next(name: str, tree: Mapping[str, str], importers: Mapping[str, set[str]]) -> set[str]:
    """What uses a file."""
    if not name.endswith(".py"):
        word = Path(name).name
        return {test for test, text in tree.items() if test.startswith("tests/") and word in text}
    if Path(name).name == "conftest.py":
        folder = f"{Path(name).parent.as_posix()}/"
        return {test for test in tree if test.startswith(folder)}
    return importers.get(name, set())


def _is_test(name: str) -> bool:
    return Path(name).name.startswith("test_")


def _is_mirror(test: str, name: str) -> bool:
    """Whether a test file has the name of a module, in the same package."""
    package, _, rest = name.partition("/")
    return (
        name.endswith(".py")
        and test.startswith(f"tests/{package}/")
        and Path(test).name == (f"test_{Path(rest).name}")
    )


def _importers(tree: Mapping[str, str]) -> dict[str, set[str]]:
    """The files that import each file."""
    modules = {_module(name): name for name in tree}
    importers: dict[str, set[str]] = {}
    for name, text in tree.items():
        for module in _imports(name, text):
            # `from a.b import c`: c may be a module, or a name in a.b.
            imported = modules.get(module) or modules.get(module.rpartition(".")[0])
            if imported and imported != name:
                importers.setdefault(imported, set()).add(name)
    return importers


def _imports(name: str, text: str) -> Iterator[str]:
    package = _module(name).split(".")
    if not name.endswith("/__init__.py"):
        package.pop()
    for dots, base, names in _FROM.findall(text):
        above = package[: len(package) + 1 - len(dots)] if dots else []
        for each in re.findall(r"\w+", names):
            yield ".".join([*above, *filter(None, [base]), each])
    yield from _IMPORT.findall(text)
    yield from _NAMED.findall(text)


def _module(name: str) -> str:
    return name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def _python_files(root: Path) -> list[str]:
    listed = _git(root, "ls-files", "--cached", "--others", "--exclude-standard", "--", "*.py")
    return [name for name in listed if name.startswith(_PACKAGES) and (root / name).is_file()]


def _git(root: Path, *words: str) -> list[str]:
    done = subprocess.run(["git", *words], cwd=root, check=True, capture_output=True, text=True)
    return done.stdout.splitlines()
