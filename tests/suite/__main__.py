"""`python -m tests.suite`: the checks and tests of one tier, or the tests that are named."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.suite.changed import changed_files, concerned_tests
from tests.suite.failures import Failure, read_failures, render
from tests.suite.fast_folder import fast_folder
from tests.suite.steps import Ended, Step, run
from tests.support.registering import ROOT

_USAGE = "./scripts/test [--all | --changed] [OPTION ...] [TEST ...] [-k WORDS] [-- PYTEST OPTIONS]"
_PYTHON = sys.executable
_PYTEST = (_PYTHON, "-m", "pytest")
#: Python compiles a library at its first import: once here, and not in each worker at the same time.
_IMPORTS = """
from contextlib import suppress
from importlib import import_module
for name in ("torch._dynamo", "transformers.trainer", "lightning", "sklearn.metrics", "matplotlib.pyplot"):
    with suppress(ImportError):
        import_module(name)
"""
#: Tests that wait for a cluster leave room for others: two cores carry more than two workers.
_WORKERS, _CORE_WORKERS = 3, 3


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="./scripts/test",
        usage=_USAGE,
        description="Without arguments: lint, types, import contracts and the quick tests, which prove each "
        "promise once, on a real Slurm cluster too. About ten minutes on two cores.",
    )
    tier = parser.add_mutually_exclusive_group()
    tier.add_argument("--all", action="store_true", help="all tests, those marked slow too")
    tier.add_argument(
        "--changed",
        action="store_true",
        help="the quick tests that concern what differs from main, without the cluster",
    )
    parser.add_argument(
        "--tests-only",
        action="store_true",
        help="no lint and no types: with other packages than the pinned ones",
    )
    parser.add_argument("--reverse", action="store_true", help="run the test files in reverse order")
    parser.add_argument(
        "--without-workloads",
        action="store_true",
        help="the named tests of the core in a copy of the tree without workloads",
    )
    parser.add_argument("-k", metavar="WORDS", help="only tests whose names hold these words, of either tier")
    parser.add_argument("-x", action="store_true", help="stop at the first failure")
    parser.add_argument("tests", nargs="*", metavar="TEST", help="files, folders, FILE::TEST, of either tier")
    return parser


def _parse(arguments: Sequence[str]) -> tuple[argparse.Namespace, list[str]]:
    """The options, and what stands behind `--`, for pytest."""
    words = list(arguments)
    rest: list[str] = []
    if "--" in words:
        place = words.index("--")
        words, rest = words[:place], words[place + 1 :]
    return _parser().parse_intermixed_args(words), rest


def main(arguments: Sequence[str]) -> int:
    """Run what is asked for; return the exit status."""
    options, rest = _parse(arguments)
    rest += ["--reverse"] * options.reverse + ["-x"] * options.x
    with tempfile.TemporaryDirectory(prefix="failures-") as folder, fast_folder() as temporary:
        if temporary:
            os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", temporary)
        if options.tests or options.k or options.without_workloads:
            named = [*_examples(options), *options.tests, *(("-k", options.k) if options.k else ())]
            step = _named(Path(folder), named, rest, _repeat(options), options.without_workloads)
            return _finish([run(step, ROOT)])
        if options.changed:
            return _run_changed(Path(folder), rest)
        tier = _examples(options) or ["-m", "not slow"]
        return _run_tier(Path(folder), tier, rest, _repeat(options), is_checked=not options.tests_only)


def _examples(options: argparse.Namespace) -> list[str]:
    """With --all, hypothesis draws new examples, and keeps those that fail for the next time."""
    return ["--hypothesis-profile=new examples"] if options.all else []


def _repeat(options: argparse.Namespace) -> str:
    return "./scripts/test --all" if options.all else "./scripts/test"


def _named(folder: Path, named: Sequence[str], rest: Sequence[str], repeat: str, is_bare: bool) -> Step:
    program = (_PYTHON, "-m", "tests.without_workloads") if is_bare else _PYTEST
    repeat += " --without-workloads" if is_bare else ""
    return _tests("tests", program, folder, repeat, [*named, *rest])


def _tests(name: str, program: Sequence[str], folder: Path, repeat: str, words: Sequence[str]) -> Step:
    failures = folder / f"{name.replace(' ', '_')}.jsonl"
    command = (*program, f"--failures={failures}", f"--repeat={repeat}", *words)
    return Step(name=name, command=command, repeat=repeat, failures=failures)


def _run_changed(folder: Path, rest: Sequence[str]) -> int:
    tests = concerned_tests(ROOT, changed_files(ROOT))
    if not tests:
        print("No test concerns what differs from main.")
        return 0
    words = [*tests, "-m", "not slow and not cluster", "--numprocesses=2", *rest]
    return _finish([run(_tests("tests", _PYTEST, folder, "./scripts/test", words), ROOT)])


def _run_tier(
    folder: Path, tier: Sequence[str], rest: Sequence[str], repeat: str, *, is_checked: bool
) -> int:
    """All checks and tests. Types are checked beside all others, the core beside the whole tree."""
    checks = [
        _check("lint", "ruff", "check", "."),
        _check("format", "ruff", "format", "--check", "."),
        _check("import contracts", "lint-imports"),
    ]
    packages = _check("Debian packages", _PYTHON, "-m", "tests.support.system_packages")
    words = [*tier, "--no-loadscope-reorder", "--durations=40", *rest]
    whole = [f"--numprocesses={_WORKERS}", "--without-core", *words]
    core = [f"--numprocesses={_CORE_WORKERS}", *words]
    bare = (_PYTHON, "-m", "tests.without_workloads")
    types = [_check("types", "mypy")] if is_checked else []
    imports = Step(name="first imports", command=(_PYTHON, "-c", _IMPORTS), repeat=repeat)
    of_core = _tests("tests of the core", bare, folder, f"{repeat} --without-workloads", core)
    with ThreadPoolExecutor() as threads:
        beside = [threads.submit(run, step, ROOT, keeps_output=True) for step in types]
        ended = [run(step, ROOT) for step in [packages, *(checks if is_checked else []), imports]]
        beside.append(threads.submit(run, of_core, ROOT, keeps_output=True))
        ended.append(run(_tests("tests", _PYTEST, folder, repeat, whole), ROOT))
        ended += [each.result() for each in beside]
    print("".join(f"\n── {each.step.name}\n{each.output}" for each in ended if each.output), flush=True)
    print("\n".join(f"{each.step.name:<20} {each.seconds:6.0f} s" for each in ended))
    return _finish(ended)


def _check(name: str, *command: str) -> Step:
    return Step(name=name, command=command, repeat=" ".join(command).replace(_PYTHON, "python"))


def _finish(ended: Sequence[Ended]) -> int:
    """Show what has failed; return the exit status."""
    print(render([failure for each in ended for failure in _failures(each)]), flush=True)
    return next((each.code for each in ended if each.code), 0)


def _failures(ended: Ended) -> list[Failure]:
    if not ended.code:
        return []
    known = read_failures(ended.step.failures) if ended.step.failures else []
    last = ended.output.strip().rpartition("\n")[2] or f"ended with exit status {ended.code}: see above"
    return known or [Failure(place=ended.step.name, message=last, repeat=ended.step.repeat)]


if __name__ == "__main__":
    began = time.monotonic()
    code = main(sys.argv[1:])
    print(f"{time.monotonic() - began:.0f} s in all")
    sys.exit(code)
