"""The arguments of optimizers and schedules of torch and transformers, read from their source.

Neither package is imported: that takes seconds, and an experiment is checked before anything is started.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class LibraryCallable:
    """A class or function of a library.

    module   its file within the package
    name     of the class, or of the function
    ours     parameters that the toolkit sets itself
    """

    package: str
    module: str
    name: str
    ours: frozenset[str] = frozenset()


#: The kind of an optimizer and of a schedule that the task itself makes.
OWN = "own"

_SPEED = ("foreach", "fused", "capturable", "differentiable")


def _torch(name: str, module: str = "") -> LibraryCallable:
    module = f"optim/{module or name.lower()}.py"
    ours = frozenset({"self", "params", "lr", "weight_decay", *_SPEED})
    return LibraryCallable(package="torch", module=module, name=name, ours=ours)


def _transformers(name: str) -> LibraryCallable:
    ours = frozenset({"optimizer", "num_warmup_steps", "num_training_steps", "last_epoch"})
    return LibraryCallable(package="transformers", module="optimization.py", name=name, ours=ours)


#: Optimizers by the names of `optimizer.kind`. LBFGS evaluates the loss itself; SparseAdam and Muon take
#: gradients and parameters of one form only.
OPTIMIZERS: Mapping[str, LibraryCallable] = {
    "adadelta": _torch("Adadelta"),
    "adafactor": _torch("Adafactor", "_adafactor"),
    "adagrad": _torch("Adagrad"),
    "adam": _torch("Adam"),
    "adamax": _torch("Adamax"),
    "adamw": _torch("AdamW"),
    "asgd": _torch("ASGD"),
    "nadam": _torch("NAdam"),
    "radam": _torch("RAdam"),
    "rmsprop": _torch("RMSprop"),
    "rprop": _torch("Rprop"),
    "sgd": _torch("SGD"),
}  # fmt: skip

#: Schedules of transformers, by the names of `lr_scheduler.kind`, which are transformers' own.
SCHEDULES: Mapping[str, LibraryCallable] = {
    "constant_with_warmup": _transformers("get_constant_schedule_with_warmup"),
    "cosine_with_min_lr": _transformers("get_cosine_with_min_lr_schedule_with_warmup"),
    "cosine_with_restarts": _transformers("get_cosine_with_hard_restarts_schedule_with_warmup"),
    "inverse_sqrt": _transformers("get_inverse_sqrt_schedule"),
    "polynomial": _transformers("get_polynomial_decay_schedule_with_warmup"),
    "warmup_stable_decay": _transformers("get_wsd_schedule"),
}  # fmt: skip

_FOLLOWS_METRICS = (
    "it changes the rate by the metrics of evaluations; here the rate follows from the step alone, so that a "
    "resumed run has the same: use step with step_at, or cosine; evaluation.patience ends training early"
)
#: Other schedules of transformers, and why they are not available.
NO_SCHEDULES: Mapping[str, str] = {
    "cosine_warmup_with_min_lr": "its warm-up is the key warmup here: use cosine_with_min_lr",
    "greedy": _FOLLOWS_METRICS,
    "reduce_lr_on_plateau": _FOLLOWS_METRICS,
}  # fmt: skip

#: Keys of the section `optimizer` beside lr and weight_decay, and the kinds that take them.
SECTION_KEYS: Mapping[str, frozenset[str]] = {
    "betas": frozenset({"adam", "adamax", "adamw", "nadam", "radam"}),
    "eps": frozenset({"adam", "adamax", "adamw", "nadam", "radam", "rmsprop"}),
    "momentum": frozenset({"rmsprop", "sgd"}),
}  # fmt: skip
#: The same for `lr_scheduler`, without final_factor: in a sweep over kinds it may have no effect in some.
SCHEDULE_KEYS: Mapping[str, frozenset[str]] = {
    "step_epochs": frozenset({"step"}),
    "step_at": frozenset({"step"}),
    "gamma": frozenset({"step"}),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument of a class or function: its annotation as text, and whether it has no default."""

    annotation: str
    is_needed: bool


@cache
def arguments_of(of: LibraryCallable) -> Mapping[str, Argument]:
    """The arguments that a user may give, by name.

    Raises LookupError if the installed package has no such class or function.
    """
    found = find_spec(of.package)
    if found is None or found.origin is None:
        raise LookupError(f"{of.package} is not installed")
    file = Path(found.origin).parent / of.module
    try:
        body = ast.parse(file.read_bytes()).body
    except OSError:
        body = []
    function = next((each for node in body if (each := _function(node, of.name)) is not None), None)
    if function is None:
        raise LookupError(f"the installed {of.package} has no {of.name}")
    own = function.args
    without = [None] * (len(own.args) - len(own.defaults))
    pairs = zip([*own.args, *own.kwonlyargs], [*without, *own.defaults, *own.kw_defaults], strict=True)
    return {
        each.arg: Argument(_annotation(each, default), default is None)
        for each, default in pairs
        if each.arg not in of.ours
    }


def _annotation(of: ast.arg, default: ast.expr | None) -> str:
    """The annotation; for a fraction without one, float."""
    if of.annotation:
        return ast.unparse(of.annotation)
    return "float" if isinstance(getattr(default, "value", None), float) else ""


def _function(node: ast.stmt, name: str) -> ast.FunctionDef | None:
    """The function of that name, or the constructor of the class of that name."""
    if isinstance(node, ast.ClassDef) and node.name == name:
        methods = (each for each in node.body if isinstance(each, ast.FunctionDef))
        return next((each for each in methods if each.name == "__init__"), None)
    return node if isinstance(node, ast.FunctionDef) and node.name == name else None


def fits(value: Any, annotation: str) -> bool:
    """Return whether a value may have the annotated type. The library checks the rest."""
    wants = {
        "bool": isinstance(value, bool),
        "int": isinstance(value, int) and not isinstance(value, bool),
        "float": isinstance(value, int | float) and not isinstance(value, bool),
        "tuple": isinstance(value, list | tuple),
        "str": isinstance(value, str),
        "None": value is None,
    }
    known = {each for each in wants if each in annotation}
    if "tuple" in known:
        # The types within it are those of its items.
        known -= {"int", "float"} if annotation.startswith("tuple") else set()
    return not known or any(wants[each] for each in known)
