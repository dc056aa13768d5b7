"""A file with three functions is read without executing it."""

from __future__ import annotations

import inspect
import keyword
import string
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.workload import Metric
from toolkit.workloads.custom.functions.reading.parameters import REQUIRED
from toolkit.workloads.custom.functions.reading.problems import Problem, Unfit
from toolkit.workloads.custom.functions.reading.signatures import Functions, functions_in, read_functions

MODEL = "def model(hidden: int = 64): ...\n"
DATA = "def data(split): ...\n"
STEP = 'def step(model, batch): return {"loss": 0}\n'


def read(*parts: str) -> Functions:
    return functions_in("".join(parts).encode(), Path("digits.py"))


def problems(*parts: str) -> tuple[Problem, ...]:
    with pytest.raises(Unfit) as raised:
        read(*parts)
    return raised.value.problems


def parameters(arguments: str, before: str = "") -> dict[str, tuple[Any, Any]]:
    found = read(before, f"def model({arguments}): ...\n", DATA, STEP).model
    return {each.name: (each.hint, each.default) for each in found}


@pytest.mark.parametrize(
    "argument, hint, default",
    [
        ("a: int = 64", int, 64),
        ("a: int", int, REQUIRED),
        ("a: 'int' = -1", int, -1),
        ("a=0.1", float, 0.1),
        ("a: float = 1", float, 1),
        ("a=True", bool, True),
        ("a: bool = 1", Any, 1),
        ("a: str = 'x'", str, "x"),
        ("a: pathlib.Path = 'data'", Path, "data"),
        ("a: int | None = None", int | None, None),
        ("a: Optional[float] = None", float | None, None),
        ("a: int = None", int | None, None),
        ("a: list[int] = (1, 2)", tuple[int, ...], (1, 2)),
        ("a: tuple[float, float] = (0.9, 0.99)", tuple[float, ...], (0.9, 0.99)),
        ("a=[1, 0.5]", tuple[float, ...], [1, 0.5]),
        ("a: Callable = None", Any, None),
        ("a", Any, REQUIRED),
        ("*, a: int = 2 * 32", int, 64),
        ("a: int = SIZE // 2", int, 4),
    ],
)
def test_parameter_has_its_written_type_and_default(argument: str, hint: Any, default: Any) -> None:
    assert parameters(argument, "SIZE = 8\n") == {"a": (hint, default)}


@pytest.mark.parametrize(
    "again",
    [
        "if os.environ.get('BIG'):\n    SIZE = 256\n",
        "SIZE = 9\n",
        "SIZE *= 2\n",
        "from settings import SIZE\n",
        "SIZE, DEPTH = 8, 2\n",
        "for SIZE in range(3): ...\n",
        "try: ...\nexcept Exception as SIZE: ...\n",
        "def set_size():\n    global SIZE\n    SIZE = 2\n",
        "match os.environ:\n    case {'BIG': SIZE}: ...\n",
        "match sys.argv:\n    case [_, *SIZE]: ...\n",
        "match os.environ:\n    case {'BIG': _, **SIZE}: ...\n",
    ],
)
def test_constant_that_is_bound_again_is_no_known_default(again: str) -> None:
    """The function then uses the default that it has when it is called."""
    assert "a" not in parameters("a: int = SIZE", f"SIZE = 8\n{again}")


@pytest.mark.parametrize("argument", ["a=nn.ReLU", "a=print()", "a=b'x'", "a={1: 2}", "a='x' * 9", "**more"])
def test_parameters_that_cannot_be_read_from_the_text_are_left_out(argument: str) -> None:
    assert parameters(argument) == {}


def test_positional_only_parameter_is_refused() -> None:
    (problem,) = problems("def model(hidden=3, /): ...\n", DATA, STEP)
    assert "hidden" in problem.problem


@pytest.mark.parametrize(
    "function",
    [
        "step(batch, model)",
        "step(batch, net)",
        "step(x, model)",
        "step(batch, /, model)",
        "optimizer(lr: float = 0.1)",
        "optimizer(lr=LR, model=None)",
    ],
)
def test_arguments_in_another_order_than_they_are_given_are_found(function: str) -> None:
    (problem,) = read("LR = 0.1\n", MODEL, DATA, STEP, f"def {function}: return {{'loss': 0}}\n").disorders
    assert f"found {function.partition('(')[0]}(" in problem.problem
    assert problem.line == 5


def test_another_order_of_the_numbers_of_a_schedule_is_only_doubted() -> None:
    found = read(MODEL, DATA, STEP, "def schedule(total, step): return 1.0\n")
    assert (found.disorders, len(found.doubts)) == ((), 1)


@pytest.mark.parametrize(
    "function",
    [
        "step(net, x)",
        "step(net, batch)",
        "step(model, x, batch=None)",
        "step(*given, batch=None, model=None)",
        "optimizer(model=None, lr=0.1)",
        "optimizer(net=None, lr=0.1)",
        "optimizer(net=DEFAULT_NET, lr=0.1)",
        "optimizer(*given, lr=0.1)",
        "optimizer(net='', lr=0.1)",
        "schedule(now, total)",
        "schedule(i, step=30)",
        "data(which='train', split=0.8)",
    ],
)
def test_arguments_may_have_other_names(function: str) -> None:
    found = read(MODEL, DATA, STEP, f"def {function}: return {{'loss': 0}}\n")
    assert (found.disorders, found.doubts) == ((), ())


@pytest.mark.parametrize(
    "decorator, is_known", [("swapped", False), ("nn.jit(2)", False), ("staticmethod", True)]
)
def test_order_of_decorated_functions_is_not_known(decorator: str, is_known: bool) -> None:
    swapped = f"@{decorator}\ndef step(batch, model): return {{'loss': 0}}\n"
    assert bool(read(MODEL, DATA, swapped).disorders) == is_known


@pytest.mark.parametrize(
    "function",
    ["data(root='x', split='train')", "data(root, *, split=None)", "lengths(root='x', split='train')"],
)
def test_split_at_a_later_place_than_it_is_given_is_doubted(function: str) -> None:
    found = read(MODEL, DATA, STEP, f"def {function}: ...\n")
    assert [each.line for each in found.doubts] == [4]


def test_each_missing_function_is_named_with_an_example() -> None:
    found = problems("x = 1\n")
    assert [each.problem.split()[-1] for each in found] == ["model", "data", "step"]
    assert all(each.hint.startswith("def ") for each in found)


@pytest.mark.parametrize(
    "written",
    ["from a import model", "model = 3", "model: Any = make()", "class model: ...", "async def model(): ..."],
)
def test_name_that_is_not_a_plain_function_is_refused_with_its_line(written: str) -> None:
    (problem,) = problems(DATA, f"{written}\n", STEP)
    assert problem.line == 2


@pytest.mark.parametrize("name", ["optimizer", "schedule", "prepare"])
@pytest.mark.parametrize(
    "before",
    [
        "if x:",
        "if x: ...\nelif y:",
        "if x: ...\nelse:",
        "try: ...\nfinally:",
        "try: ...\nexcept ImportError:",
    ],
)
def test_optional_function_that_the_file_may_not_have_is_refused(before: str, name: str) -> None:
    """Otherwise the run would be trained without it."""
    (problem,) = problems(MODEL, DATA, STEP, f"{before}\n    def {name}(*given): ...\n")
    assert name in problem.problem
    assert problem.line == 5 + before.count("\n")


@pytest.mark.parametrize(
    "written",
    [
        "if __name__ == '__main__':\n    def schedule(step): ...\n",
        "try: import schedule\nexcept ImportError: ...\n",
        "if x: names = [prepare for prepare in x]\n",
        "schedule: Callable | None = None\n",
        "prepare: Any = None\n",
        "optimizer: Callable\n",
    ],
)
def test_name_of_an_optional_function_that_is_none_is_not_refused(written: str) -> None:
    found = read(MODEL, DATA, STEP, written)
    assert not any(found.has(name) for name in ("optimizer", "schedule", "prepare"))


@pytest.mark.parametrize("written", ["schedule = partial(f)", "schedule: Callable = partial(f)"])
def test_schedule_may_be_any_object_that_the_file_certainly_has(written: str) -> None:
    assert read(MODEL, DATA, STEP, written).has("schedule")


@pytest.mark.parametrize(
    "body, names",
    [
        ('return {"loss": a, "accuracy": b}', ("accuracy",)),
        ('return {"weights": a, "loss": b}', ()),
        ("return dict(loss=a, f1=b)", ("f1",)),
        ('if a: return {"loss": b, "x": 1}\n    return {"x": 1, "loss": b}', ("x",)),
        ('def inner(): return 3\n    return {"loss": b}', ()),
        ("return found", None),
        ("return {**found, 'loss': a}", None),
        ("return {name: a}", None),
    ],
)
def test_metrics_are_the_names_that_step_returns(body: str, names: tuple[str, ...] | None) -> None:
    assert read(MODEL, DATA, f"def step(model, batch):\n    {body}\n").metrics == names


@pytest.mark.parametrize("body", ["pass", "return", 'return {"accuracy": 1}'])
def test_a_step_without_a_loss_is_refused(body: str) -> None:
    (problem,) = problems(MODEL, DATA, f"def step(model, batch): {body}\n")
    assert problem.line == 3


def test_return_statements_with_different_names_are_refused() -> None:
    body = 'if a: return {"loss": b}\n    return {"loss": b, "x": 1}'
    (problem,) = problems(MODEL, DATA, f"def step(model, batch):\n    {body}\n")
    assert problem.line == 5


def test_goals_of_metrics_are_read() -> None:
    found = read(MODEL, DATA, STEP, 'metrics = {"accuracy": "max", "error": "min"}\n').declared
    assert [each.full_name for each in found] == ["accuracy:max", "error:min"]
    typed = 'metrics: ClassVar[dict[str, str]] = {"accuracy": "max", "error": "min"}\n'
    assert read(MODEL, DATA, STEP, typed).declared == found
    for other in ("metrics: object = make()\n", "metrics: dict[str, str] | None = None\n"):
        assert read(MODEL, DATA, STEP, other).declared == ()
    listed = 'metrics = [stk.Metric(name="f1", goal="max", title="F1")]\n'
    assert read(MODEL, DATA, STEP, listed).declared == (Metric(name="f1", goal="max", title="F1"),)


@pytest.mark.parametrize(
    "value", ['{"accuracy": "up"}', "3", "[accuracy]", 'make("x")', '[Metric(name="x")]']
)
def test_goals_that_cannot_be_read_are_refused(value: str) -> None:
    (problem,) = problems(MODEL, DATA, STEP, f"metrics = {value}\n")
    assert problem.line == 4


@pytest.mark.parametrize(
    "value, words",
    [
        ("{'f1': 'max', 'accuracy': 'maxx'}", ("'maxx'", "accuracy", "min or max", "did you mean max?")),
        ("{'accuracy': 1}", ("1", "accuracy", "min or max")),
        ("[Metric('accuracy')]", ("None", "accuracy", "min or max")),
        ("[Metric('accuracy', 'max', unit='shares')]", ("'shares'", "accuracy", "number or share")),
    ],
)
def test_a_wrong_goal_or_unit_of_a_metric_is_named(value: str, words: tuple[str, ...]) -> None:
    (problem,) = problems(MODEL, DATA, STEP, f"metrics = {value}\n")
    assert [each for each in words if each not in f"{problem.problem} {problem.hint}"] == []
    assert problem.line == 4


def test_a_changed_file_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "digits.py"
    path.write_text(MODEL + DATA + STEP)
    assert [each.name for each in read_functions(path).model] == ["hidden"]
    path.write_text("def model(units: int = 3, layers=2): ...\n" + DATA + STEP)
    assert [each.name for each in read_functions(path).model] == ["units", "layers"]
    with pytest.raises(FileNotFoundError):
        read_functions(tmp_path / "none.py")


names = st.text(string.ascii_lowercase, min_size=1, max_size=6).filter(
    lambda name: not keyword.iskeyword(name)
)
scalars = st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.floats(allow_nan=False) | st.text()
values = scalars | st.lists(scalars, max_size=3) | st.lists(scalars, max_size=3).map(tuple)


@given(st.dictionaries(names, values, max_size=4))
def test_defaults_equal_those_of_inspect_signature(defaults: dict[str, Any]) -> None:
    arguments = ", ".join(f"{name}={value!r}" for name, value in defaults.items())
    if "inf" in arguments:
        return
    space: dict[str, Any] = {}
    exec(f"def model({arguments}): ...", space)
    expected = {name: each.default for name, each in inspect.signature(space["model"]).parameters.items()}
    assert {name: default for name, (_, default) in parameters(arguments).items()} == expected


@given(st.binary() | st.text().map(str.encode))
def test_arbitrary_content_is_refused(content: bytes) -> None:
    with pytest.raises(Unfit):
        functions_in(content, Path("digits.py"))


expressions = st.recursive(
    st.sampled_from(
        ["1", "'x'", "a", "None", "...", "[]", "{}", "int", "list[int]", "a.b", "2 / 0", "9 ** 9"]
    ),
    lambda inner: (
        st.builds("({} | {})".format, inner, inner)
        | st.builds("[{}, {}]".format, inner, inner)
        | st.builds("{{{}: {}}}".format, inner, inner)
        | st.builds("{}[{}]".format, inner, inner)
        | st.builds("f({}, x={})".format, inner, inner)
        | st.builds("({} * {})".format, inner, inner)
    ),
    max_leaves=6,
)


@given(expressions, expressions, expressions)
def test_any_expression_is_read_or_refused(annotation: str, default: str, value: str) -> None:
    source = f"metrics = {value}\ndef model(a: {annotation} = {default}): ...\n{DATA}"
    step = f"def step(model, batch): return {value}\n"
    with suppress(Unfit):
        assert len(read(source, step).model) <= 1


def test_functions_for_predictions_are_optional() -> None:
    found = read(MODEL, DATA, STEP)
    assert not found.may_have("predict")
    predict = "def predict(model, batch, k=1): ...\n"
    assert read(MODEL, DATA, STEP, predict, "def sample(row): ...\n").lines["sample"] == 5
    for line in (predict, "from my_project import predict\n", "from my_project import *\n"):
        assert read(MODEL, DATA, STEP, line).may_have("predict")
