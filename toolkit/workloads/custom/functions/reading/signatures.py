"""Arguments and results of the three functions of a Python file, read from its source. Executes nothing."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from toolkit.report.formats import NOT_SCORES
from toolkit.workload import Metric
from toolkit.workloads.custom.functions.reading.class_body import class_body, is_static
from toolkit.workloads.custom.functions.reading.constants import UNKNOWN, constants_of, value_of
from toolkit.workloads.custom.functions.reading.metric_names import declared_metrics, returned_names
from toolkit.workloads.custom.functions.reading.parameters import Parameter, parameters_of, with_defaults
from toolkit.workloads.custom.functions.reading.problems import Problem, Unfit

#: Values that `step` returns, other than metrics.
LOSS, WEIGHTS = "loss", "weights"

#: The shortest correct example of each function.
EXAMPLES = {
    "model": "def model(hidden: int = 64): return MyModel(hidden)",
    "data": "def data(split): return MyDataset(split)",
    "step": 'def step(model, batch): return {"loss": one_value_per_sample}',
    "optimizer": "def optimizer(model, lr: float = 1e-3): return torch.optim.Adam(model.parameters(), lr)",
    "schedule": "def schedule(step, total): return 1 - step / total",
    "prepare": "def prepare(root: str = 'data'): download(root)",
    "collate": "def collate(samples): return torch.stack(samples)",
    "lengths": "def lengths(split): return [len(text) for text in texts(split)]",
    "report": 'def report(run, outputs): return {"Mistakes": [{"sample": 3, "said": 1}]}',
    "predict": "def predict(model, batch): return one_value_or_row_per_sample",
    "sample": "def sample(row): return torch.tensor(row)",
}
#: The arguments that the toolkit gives to each function, by position.
_GIVEN = {
    "model": (),
    "data": ("split",),
    "step": ("model", "batch"),
    "optimizer": ("model",),
    "schedule": ("step", "total"),
    "prepare": (),
    "collate": ("samples",),
    "lengths": ("split",),
    "report": ("run", "outputs"),
    "predict": ("model", "batch"),
    "sample": ("row",),
}
#: Functions that a file of a task may not leave out.
_NEEDED = ("model", "data", "step")
#: The functions whose further parameters an experiment file sets.
_WITH_KEYS = ("model", "data", "optimizer", "prepare")
#: Functions for which another order of arguments is only doubted. The training does not need `report` and
#: `predict`, which may be for other code, and `schedule` may give its numbers any names.
_DOUBTED = ("report", "predict", "schedule")
#: The name in `from module import *`, which may import any name.
_ANYTHING = "*"


@dataclass(frozen=True, slots=True, kw_only=True)
class Functions:
    """The content of a file with three functions.

    model, data  their parameters, without the split
    optimizer    its parameters, without the model; None if the file has no such function
    prepare      its parameters; None if the file has no such function
    metrics      names of the metrics that `step` returns; None if they are known only at run time
    declared     metrics with a goal that the file declares
    lines        the line of each function
    others       other names that the file defines; contains `*` if it has a star import
    imports      the names that it always imports, such as `.layers.Block`, with the line
    disorders    functions whose arguments are in another order, with which the training fails
    doubts       probable mistakes that do not stop the training
    """

    path: Path
    model: tuple[Parameter, ...]
    data: tuple[Parameter, ...]
    optimizer: tuple[Parameter, ...] | None
    prepare: tuple[Parameter, ...] | None
    metrics: tuple[str, ...] | None
    declared: tuple[Metric, ...]
    lines: Mapping[str, int]
    others: frozenset[str] = frozenset()
    imports: Mapping[str, int] = field(default_factory=dict)
    disorders: tuple[Problem, ...] = ()
    doubts: tuple[Problem, ...] = ()

    def has(self, name: str) -> bool:
        """Whether the file certainly has a name."""
        return name in self.lines or name in self.others

    def may_have(self, name: str) -> bool:
        """Whether the file may have a function: its source shows it, or has a star import."""
        return name in self.lines or not self.others.isdisjoint((name, _ANYTHING))


def read_functions(path: Path, class_name: str | None = None) -> Functions:
    """Read the functions of a file, or of a class in it.

    Raises Unfit with all problems, and OSError.
    """
    status = path.stat()
    return _read(path, class_name, status.st_mtime_ns, status.st_size)


@lru_cache(maxsize=32)
def _read(path: Path, class_name: str | None, changed: int, size: int) -> Functions:
    """Like `read_functions`, but cached for the runs of a sweep."""
    return functions_in(path.read_bytes(), path, class_name)


def functions_in(source: bytes, path: Path, class_name: str | None = None) -> Functions:
    """Return the functions in the source of a file, or in a class of it. Raises Unfit with all problems."""
    tree = _parsed(source)
    constants, imports = constants_of(tree), dict(_imports(tree))
    if class_name is not None:
        tree = class_body(tree, class_name)
        constants |= constants_of(tree)
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    problems = list(_missing(tree, functions, class_name, path.name))
    disorders: list[Problem] = []
    doubts: list[Problem] = []
    parameters: dict[str, tuple[Parameter, ...]] = {}
    for name in (each for each in _GIVEN if each in functions):
        problems += _wrong_arguments(functions[name], _GIVEN[name])
        found = doubts if name in _DOUBTED else disorders
        found += _other_order(functions[name], _GIVEN[name], constants)
        doubts += _late_split(functions[name], _GIVEN[name], constants)
        if name in _WITH_KEYS:
            parameters[name] = tuple(parameters_of(functions[name], len(_GIVEN[name]), constants))
    problems += _differing(parameters)
    metrics = None
    try:
        if "step" in functions:
            metrics = _metrics(functions["step"])
        declared = tuple(declared_metrics(tree, constants))
    except Unfit as unfit:
        problems += unfit.problems
    if class_name is not None:
        problems, disorders, doubts = (
            [_with_self(each, functions) for each in found] for found in (problems, disorders, doubts)
        )
    if problems:
        raise Unfit(problems)
    return Functions(
        path=path,
        model=parameters["model"],
        data=parameters["data"],
        optimizer=parameters.get("optimizer"),
        prepare=parameters.get("prepare"),
        metrics=metrics,
        declared=declared,
        lines={name: functions[name].lineno for name in _GIVEN if name in functions},
        others=frozenset(name for name, _ in _bound_otherwise(tree)),
        imports=imports,
        disorders=tuple(disorders),
        doubts=tuple(doubts),
    )


def _parsed(source: bytes) -> ast.Module:
    try:
        return ast.parse(source)
    except SyntaxError as error:
        text = (error.text or "").strip()
        problem = f"is not valid Python: {error.msg}" + (f", in {text!r}" if text else "")
        raise Unfit([Problem(problem=problem, line=error.lineno or 0)]) from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise Unfit([Problem(problem=f"is not valid Python: {error}")]) from error


def _imports(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Yield the names that the top level of a file imports, with their lines.

    Imports within other statements, such as `if`, `try`, `with` or a function, may never be executed.
    """
    for each in tree.body:
        if isinstance(each, ast.Import):
            yield from ((name.name, each.lineno) for name in each.names)
        elif isinstance(each, ast.ImportFrom):
            module = f"{each.module}." if each.module else ""
            yield from (("." * each.level + module + name.name, each.lineno) for name in each.names)


def _with_self(problem: Problem, functions: Mapping[str, ast.FunctionDef]) -> Problem:
    """Return a problem of a class: the example in its hint is a method, unless this is a static one."""
    example = re.match(r"def (\w+)\(", problem.hint)
    if example is None or (example[1] in functions and is_static(functions[example[1]])):
        return problem
    return replace(problem, hint=f"{example[0]}self, {problem.hint.removeprefix(example[0])}")


def _missing(
    tree: ast.Module, functions: Mapping[str, ast.FunctionDef], class_name: str | None, file: str
) -> Iterator[Problem]:
    others, conditional = dict(_bound_otherwise(tree)), dict(_defined_conditionally(tree))
    for name in dict.fromkeys((*_NEEDED, *_WITH_KEYS, "schedule")):
        if name in functions or (name in others and name == "schedule"):
            continue
        if name in others:
            problem = f"{name} is not a plain function of this file, so its parameters are not known here"
            yield Problem(problem=problem, hint=EXAMPLES[name], line=others[name])
        elif name in conditional:
            problem = f"{name} is defined within if or try, so it is not known here whether it exists"
            yield Problem(problem=problem, hint=EXAMPLES[name], line=conditional[name])
        elif name in _NEEDED and class_name:
            problem = (
                f"class {class_name} has no method {name} of its own; methods of a base class are not read"
            )
            yield Problem(problem=problem, hint=EXAMPLES[name])
        elif name in _NEEDED:
            may_be_script = name == "step" and functions.keys().isdisjoint(_NEEDED)
            more = f"; a script? -- python {file}" if may_be_script else ""
            yield Problem(problem=f"has no function {name}", hint=f"{EXAMPLES[name]}{more}")


def _bound_otherwise(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Names that are imported, assigned, or defined as something other than a plain function."""
    for node in tree.body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield from ((each.asname or each.name, node.lineno) for each in node.names)
        elif isinstance(node, ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name, node.lineno
        elif isinstance(node, ast.Assign):
            yield from ((each.id, node.lineno) for each in node.targets if isinstance(each, ast.Name))
        elif (
            isinstance(node, ast.AnnAssign)
            and isinstance(node.target, ast.Name)
            and node.value is not None
            # A literal is no function, as in `schedule: Callable | None = None`.
            and value_of(node.value, {}) is UNKNOWN
        ):
            yield node.target.id, node.lineno


def _defined_conditionally(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Functions that are defined in branches of `if` and `try`, with their lines."""
    waiting: list[ast.AST] = [*tree.body]
    while waiting:
        node = waiting.pop()
        # A file that is imported does not execute its `if __name__ == "__main__":`.
        if isinstance(node, ast.If) and "__name__" in ast.unparse(node.test):
            continue
        if isinstance(node, ast.If | ast.Try | ast.ExceptHandler):
            inner = list(ast.iter_child_nodes(node))
            yield from ((each.name, each.lineno) for each in inner if isinstance(each, ast.FunctionDef))
            waiting += inner


def _wrong_arguments(function: ast.FunctionDef, given: Sequence[str]) -> Iterator[Problem]:
    """Find arguments that the toolkit does not give, or that are missing.

    given   names of the positional arguments that it gives
    """
    name, taken = function.name, function.args
    places = [*taken.posonlyargs, *taken.args]
    if len(places) < len(given) and taken.vararg is None:
        yield _expected(function, given)
    for each in taken.posonlyargs[len(given) :]:
        problem = f"{name} takes {each.arg} by position only, but it is given by name"
        yield Problem(problem=problem, hint="leave out the / after it", line=each.lineno)
    needed = [each.arg for each, default in with_defaults(taken, len(given)) if default is None]
    if name not in _WITH_KEYS and needed:
        problem = f"found {name}(…, {', '.join(needed)}), but it is given {' and '.join(given)} only"
        yield Problem(
            problem=problem, hint=f"give {needed[0]} a default, or leave it out", line=function.lineno
        )


def _other_order(
    function: ast.FunctionDef, given: Sequence[str], constants: Mapping[str, Any]
) -> Iterator[Problem]:
    """Find arguments in another order than they are given in. The function may have other names for them."""
    taken = function.args
    # An argument with a default may have the name of another one, as in `schedule(i, step=30)`.
    needed = [*taken.posonlyargs, *taken.args][: -len(taken.defaults) or None]
    pairs = zip(needed, given, strict=False)
    is_swapped = any(each.arg in given and each.arg != right for each, right in pairs)
    has_enough = len(taken.posonlyargs) + len(taken.args) >= len(given) or taken.vararg is not None
    is_known = has_enough and not _is_decorated(function)
    if is_known and (is_swapped or _lacks_the_model(taken, given, constants)):
        yield _expected(function, given)


def _late_split(
    function: ast.FunctionDef, given: Sequence[str], constants: Mapping[str, Any]
) -> Iterator[Problem]:
    """Find `data(root="x", split="train")`: the split is given as `root`. A number is a share of the data."""
    if given != ("split",) or _is_decorated(function):
        return
    for each, default in with_defaults(function.args, 1):
        is_share = default is not None and isinstance(value_of(default, constants), int | float)
        if each.arg == "split" and not is_share:
            yield _expected(function, given)


def _is_decorated(function: ast.FunctionDef) -> bool:
    """Whether a decorator may change the arguments of a function."""
    return any(ast.unparse(each) not in ("staticmethod", "classmethod") for each in function.decorator_list)


def _expected(function: ast.FunctionDef, given: Sequence[str]) -> Problem:
    name, taken = function.name, function.args
    names = ", ".join(each.arg for each in (*taken.posonlyargs, *taken.args))
    more = ", …" if name in ("data", "optimizer") else ""
    problem = f"found {name}({names}), expected {name}({', '.join(given)}{more})"
    return Problem(problem=problem, hint=EXAMPLES[name], line=function.lineno)


def _lacks_the_model(taken: ast.arguments, given: Sequence[str], constants: Mapping[str, Any]) -> bool:
    """Whether a setting, such as `lr=0.1`, is where the model is given. `net=""` may be the model."""
    places = [*taken.posonlyargs, *taken.args]
    if given[:1] != ("model",) or not places or places[0].arg == "model":
        return False
    _, default = next(with_defaults(taken, 0))
    value = UNKNOWN if default is None else value_of(default, constants)
    return isinstance(value, int | float | str) and bool(value)


def _differing(parameters: Mapping[str, Sequence[Parameter]]) -> Iterator[Problem]:
    """Find keys of the section `data` that `data` and `prepare` declare differently."""
    of_data = {each.name: each for each in parameters.get("data", ())}
    for each in parameters.get("prepare", ()):
        other = of_data.get(each.name)
        if other is not None and (other.hint, other.default) != (each.hint, each.default):
            yield Problem(
                problem=f"prepare has {each.name} with another type or default than data",
                hint="give both the same: it is one key of the section data",
                line=each.line,
            )


def wrong_name(metrics: Iterable[Any]) -> str:
    """Return the problem with the name of a metric, and what to do; empty if all names are allowed."""
    for name in metrics:
        if not isinstance(name, str) or not name:
            return f"the metric {name!r}, expected a name"
        if name in NOT_SCORES:
            return f"the metric {name}, a name that metrics.jsonl uses for something else: choose another"
    return ""


def _metrics(step: ast.FunctionDef) -> tuple[str, ...] | None:
    names = returned_names(step)
    if names is None:
        return None
    if LOSS not in names:
        found = f"step returns {', '.join(names)}" if names else "step returns nothing"
        problem = f'{found}, expected a dictionary with "{LOSS}"'
        raise Unfit([Problem(problem=problem, hint=EXAMPLES["step"], line=step.lineno)])
    metrics = tuple(name for name in names if name not in (LOSS, WEIGHTS))
    if wrong := wrong_name(metrics):
        raise Unfit([Problem(problem=f"step returns {wrong}", line=step.lineno)])
    return metrics
