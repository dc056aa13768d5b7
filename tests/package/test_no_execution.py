"""Nothing here runs text as code, or hands it to a shell; what another user may have written is not executed.

That is no pickle, and no module of the working directory.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILES = sorted(path for package in ("toolkit", "slurm") for path in (ROOT / package).rglob("*.py"))

BUILTINS = {"eval", "exec", "compile", "__import__"}
#: By module and name; an import under another name counts too.
CALLS = {
    ("os", "system"), ("os", "popen"), ("subprocess", "getoutput"), ("subprocess", "getstatusoutput"),
    ("torch", "load"), ("yaml", "load"), ("yaml", "unsafe_load"), ("yaml", "full_load"), ("joblib", "load"),
}  # fmt: skip
#: Collectives of torch that unpickle what arrives, and modules that do nothing else.
OBJECTS = {
    *("all_gather_object", "broadcast_object_list", "gather_object", "scatter_object_list"),
    *("send_object_list", "recv_object_list", "all_to_all_object"),
}
MODULES = {"pickle", "cPickle", "_pickle", "marshal", "shelve", "dill", "cloudpickle"}


def forbidden(tree: ast.AST) -> Iterator[str]:
    """What stands in a module and must not, with its line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            for each in node.names:
                module = getattr(node, "module", None) or each.name
                named = {module.partition(".")[0], each.name, (module, each.name)}
                if named & {*MODULES, *OBJECTS, *CALLS}:
                    yield f"{node.lineno}: {ast.unparse(node)}"
        if isinstance(node, ast.Attribute) and node.attr in OBJECTS:
            yield f"{node.lineno}: {node.attr}"
        if isinstance(node, ast.List):
            words = [ast.unparse(each) for each in node.elts]
            if words[:1] == ["sys.executable"] and "'-m'" in words and "'-P'" not in words:
                yield f"{node.lineno}: -m without -P"
        if not isinstance(node, ast.Call):
            continue
        called = node.func
        if isinstance(called, ast.Name) and called.id in BUILTINS:
            yield f"{node.lineno}: {called.id}()"
        if isinstance(called, ast.Attribute) and (ast.unparse(called.value), called.attr) in CALLS:
            yield f"{node.lineno}: {ast.unparse(called)}()"
        for keyword in node.keywords:
            value = keyword.value
            if keyword.arg == "shell" and not (isinstance(value, ast.Constant) and value.value is False):
                yield f"{node.lineno}: shell="
            if ast.unparse(keyword) in {"allow_pickle=True", "weights_only=False"}:
                yield f"{node.lineno}: {ast.unparse(keyword)}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_modules_execute_no_text_and_read_no_pickles(path: Path) -> None:
    assert list(forbidden(ast.parse(path.read_text(encoding="utf-8")))) == []


@pytest.mark.parametrize(
    "text",
    [
        "eval('1')", "exec(text)", "import os\nos.system('x')", "run('x', shell=True)",
        "run('x', shell=told)", "torch.load(path)", "from pickle import loads", "yaml.load(text)",
        "import pickle", "dist.all_gather_object(a, b)", "np.load(path, allow_pickle=True)",
        "from torch.distributed import broadcast_object_list", "torch.jit.load(path, weights_only=False)",
        "[sys.executable, '-u', '-m', name]",
    ],
)  # fmt: skip
def test_forbidden_calls_and_imports_are_found(text: str) -> None:
    assert list(forbidden(ast.parse(text)))


@pytest.mark.parametrize(
    "text",
    [
        "model.eval()", "re.compile(x)", "torch.compile(m)", "run(['x'], shell=False)",
        "[sys.executable, '-P', '-m', name]", "[sys.executable, 'train.py']",
    ],
)  # fmt: skip
def test_harmless_code_is_allowed(text: str) -> None:
    assert list(forbidden(ast.parse(text))) == []
