"""Functions and arguments that cannot be a job are refused with advice, and nothing is written."""

from __future__ import annotations

import functools
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import stk

ENDLESS: list[Any] = []
ENDLESS.append(ENDLESS)


@pytest.fixture(autouse=True)
def untouched(folder: Path) -> Iterator[None]:
    yield
    assert not (folder / "experiments").exists()


@pytest.mark.parametrize(
    "function, words",
    [
        (lambda work: lambda: 1, ("lambda", "def")),
        (lambda work: work.outer(), ("outer.<locals>.inner", "top level")),
        (lambda work: functools.partial(work.add, 1), ("partial", "function in a module")),
        (lambda work: work.Model().fit, ("Model.fit", "function itself")),
        (lambda work: work.later, ("later", "async")),
        (lambda work: work.numbers, ("numbers", "generator")),
    ],
    ids=["lambda", "nested", "partial", "method", "async", "generator"],
)
def test_unimportable_function_is_refused(work: ModuleType, function: Any, words: tuple[str, ...]) -> None:
    with pytest.raises(stk.UserError) as raised:
        stk.submit(function(work), cluster="local")
    assert all(word in str(raised.value) for word in words)


def test_function_of_an_interactive_session_is_refused(folder: Path) -> None:
    code = (
        "import stk\ndef train(): pass\ntry: stk.submit(train)\nexcept stk.UserError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "__main__" in done.stdout
    assert "from work import train" in done.stdout


@pytest.mark.parametrize(
    "args, kwargs, word",
    [
        ((), {}, "'a'"),
        ((1, 2, 3), {}, "too many"),
        ((1,), {"c": 1}, "'c'"),
        ((10**5000,), {}, "argument 1 is a whole number"),
        ((object(),), {}, "argument 1 is of type object"),
        ((1,), {"b": {"x": [{1}]}}, "argument b['x'][0] is of type set"),
        (("x" * 200_000,), {}, "200,"),
        ((ENDLESS,), {}, "argument 1 holds itself"),
    ],
)
def test_invalid_arguments_are_refused(
    work: ModuleType, args: tuple[Any, ...], kwargs: dict[str, Any], word: str
) -> None:
    with pytest.raises(stk.UserError) as raised:
        stk.submit(work.add, *args, **kwargs)
    assert word in str(raised.value)


def test_parameter_named_like_an_option_is_refused(work: ModuleType) -> None:
    with pytest.raises(stk.UserError, match="cluster is a parameter of needs"):
        stk.submit(work.needs, cluster="local")


def test_sweep_of_a_function_is_refused(work: ModuleType) -> None:
    with pytest.raises(stk.UserError, match=r"stk\.submit"):
        stk.sweep(work.add, {"a": [1, 2]})
