"""Read YAML as people expect it: the scalars of YAML 1.2, the line of every key, no duplicate keys.

Plain YAML 1.1, as PyYAML reads it, turns `no` into false, `1:00:00` into 3600 and 2024-01-01 into a
date, leaves `1e-3` a text, and lets the second of two equal keys win.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml

from toolkit.config.origins import UNKNOWN, Key, dotted
from toolkit.files import read_regular
from toolkit.system.output.nearest import nearest

# The C versions read and write about ten times faster, where PyYAML was built with them.
_BaseLoader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_BaseDumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)

_TAG = "tag:yaml.org,2002:"
_MERGE = _TAG + "merge"
_SUFFIXES = (".yaml", ".yml")

#: libyaml's composer recurses in C: a deeper document would end the process.
MAX_DEPTH = 100
#: Values of an experiment: aliases of aliases, merges of merges and files that include others twice could
#: otherwise exhaust the memory.
MAX_VALUES = 100_000
#: Bytes of a file: enough for MAX_VALUES values with long names.
MAX_BYTES = 8 << 20

#: Tag, form of a plain scalar, its possible first characters, value. YAML 1.2's core schema, without
#: signs and leading zeros of whole numbers: `007` and `+49` are more likely meant as names.
_SCALARS: tuple[tuple[str, str, str, Callable[[str], Any]], ...] = (
    ("null", r"~|null|Null|NULL|", "~nN\0", lambda text: None),
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF", lambda text: text.lower() == "true"),
    ("int", r"-?(0|[1-9][0-9]{0,99})", "-0123456789", int),
    (
        "float",
        r"[-+]?((\.[0-9]+|[0-9]+\.[0-9]*)([eE][-+]?[0-9]+)?|[0-9]+[eE][-+]?[0-9]+|\.(inf|Inf|INF))"
        r"|\.(nan|NaN|NAN)",
        "-+.0123456789",
        lambda text: float(text.lower().replace(".inf", "inf").replace(".nan", "nan")),
    ),
)
_STARTS = (
    yaml.BlockMappingStartToken,
    yaml.BlockSequenceStartToken,
    yaml.FlowMappingStartToken,
    yaml.FlowSequenceStartToken,
)
_WITHOUT_TEXT = (yaml.BlockEndToken, yaml.StreamEndToken)
_ENDS = (yaml.BlockEndToken, yaml.FlowMappingEndToken, yaml.FlowSequenceEndToken)

# The end is part of the form, because PyYAML only matches the beginning.
_FORMS = {_TAG + name: re.compile(rf"(?:{form})\Z") for name, form, _, _ in _SCALARS}
_VALUES = {_TAG + name: value for name, _, _, value in _SCALARS}


class _Loader(_BaseLoader):  # type: ignore[misc]
    yaml_implicit_resolvers: dict[str, list[Any]] = {}  # noqa: RUF012 (PyYAML's own way)


class _Dumper(_BaseDumper):  # type: ignore[misc]
    """Quotes every text that YAML 1.1 or 1.2 would read as another type."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _add_scalars(target: type[_Loader] | type[_Dumper]) -> None:
    for name, _, first, _ in _SCALARS:
        # An empty scalar has no first character; PyYAML looks it up under "".
        characters = [character.strip("\0") for character in first]
        target.add_implicit_resolver(_TAG + name, _FORMS[_TAG + name], characters)


_add_scalars(_Loader)
_add_scalars(_Dumper)
_Loader.add_implicit_resolver(_MERGE, re.compile(r"<<\Z"), ["<"])


class Unreadable(Exception):
    """A text is not a valid document. line counts from 1; 0 for the whole text."""

    def __init__(self, problem: str, line: int = 0, hint: str = "") -> None:
        super().__init__(problem)
        self.problem = problem
        self.line = line
        self.hint = hint


@dataclass(slots=True)
class Document:
    """A document's plain value, the line of every key, and its faults: (key, line, problem, hint).

    size counts the values, copies by aliases included. UNKNOWN takes the place of a wrong value.
    """

    value: Any = None
    size: int = 0
    lines: dict[Key, int] = field(default_factory=dict)
    faults: list[tuple[Key, int, str, str]] = field(default_factory=list)


class Files:
    """Reads YAML files, each once: a file that many experiments share is parsed for the first of them.

    A file that cannot be read is tried again.
    """

    def __init__(self) -> None:
        self._documents: dict[Path, Document] = {}

    def read(self, path: Path) -> Document:
        """Return a file's document with a copy of its values. Raises Unreadable."""
        known = self._documents.get(path)
        if known is None:
            known = self._documents[path] = parse(read_text(path))
        return replace(known, value=mapped(known.value, lambda value: value))


def mapped(value: Any, change: Callable[[Any], Any]) -> Any:
    """A copy in which every value that is neither a mapping nor a list is changed."""
    if isinstance(value, dict):
        return {name: mapped(inner, change) for name, inner in value.items()}
    return [mapped(inner, change) for inner in value] if isinstance(value, list | tuple) else change(value)


def scalar(text: str) -> Any:
    """Return the meaning of an unquoted YAML scalar: None, a bool, an int, a float or the text itself."""
    for tag, form in _FORMS.items():
        if form.fullmatch(text):
            return _VALUES[tag](text)
    return text


def parse(text: str) -> Document:
    """Read one YAML document; an empty one has the value None. Raises Unreadable."""
    try:
        _refuse_depth(text)
        loader = _Loader(text)
        try:
            node = loader.get_single_node()
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        _refuse_deep_tokens(text)
        raise _unreadable(error, text) from None
    except (yaml.YAMLError, UnicodeError) as error:
        raise Unreadable(f"not YAML: {' '.join(str(error).split())}") from None
    builder = _Builder()
    if node is not None:
        builder.document.value = builder.build(node, (), ())
    return builder.document


def last_comment(text: str) -> str:
    """The comment at the end of a text that `parse` can read; empty without one."""
    tokens = yaml.scan(text, Loader=_Loader)
    # The end of a block has the place of the next token.
    ends = [each.end_mark.index for each in tokens if not isinstance(each, _WITHOUT_TEXT)]
    return text[max(ends) :].strip()


#: Texts in place of files, for experiments that are made from a command line.
_GIVEN: dict[Path, str] = {}


#: Files whose text the user wrote on the command line.
_TYPED: set[Path] = set()


def give_text(path: Path, text: str, *, is_typed: bool) -> None:
    """Let this process read a text under the name of a file that does not exist.

    is_typed  whether faults in it are located on the command line
    """
    _GIVEN[path] = text
    if is_typed:
        _TYPED.add(path)


def is_typed(path: Path) -> bool:
    """Whether the text of this name was written on the command line."""
    return path in _TYPED


def read_text(path: Path) -> str:
    """The text of a file. Raises Unreadable, with the reason."""
    if (given := _GIVEN.get(path)) is not None:
        return given
    if path.suffix == ".py" and path.is_file():
        raise _of_python(path)
    try:
        raw = read_regular(path, MAX_BYTES)
        return raw.decode("utf-8-sig")
    except FileNotFoundError:
        raise Unreadable("there is no such file", hint=_neighbour(path)) from None
    except IsADirectoryError:
        raise Unreadable("this is a folder, expected a YAML file") from None
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise Unreadable(f"not UTF-8 text: byte {error.start} is 0x{raw[error.start]:02x}", line) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise Unreadable(f"the file cannot be read: {reason}") from None


def _of_python(path: Path) -> Unreadable:
    """The error for a Python file, with the ways to run it."""
    of_functions = f"for the functions of a task: `name: {path.stem}`, `task: {path.name}`"
    hint = f"{of_functions}; a script needs no file: stk run -- python {shlex.quote(str(path))}"
    return Unreadable("this is a Python file, expected a YAML file", hint=hint)


def dump(value: Any) -> str:
    """Write plain values as YAML; texts are read back as the same texts."""
    text = yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=4096)
    return str(text)


def _neighbour(path: Path) -> str:
    """A hint: the YAML file with the nearest name in that folder, or how to give a command."""
    try:
        names = {entry.stem: entry.name for entry in path.parent.iterdir() if entry.suffix in _SUFFIXES}
    except (OSError, ValueError):
        return ""
    if match := nearest(path.stem, names):
        return f"did you mean {names[match]}?"
    is_file = path.suffix in _SUFFIXES
    return "" if is_file else "an experiment file comes first, or -- and a command: -- python train.py"


def _refuse_depth(text: str) -> None:
    depth = 0
    for event in yaml.parse(text, Loader=_Loader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > MAX_DEPTH:
            raise Unreadable(f"nested more than {MAX_DEPTH} deep", _line(event))


def _refuse_deep_tokens(text: str) -> None:
    """Raise Unreadable if the tokens of a text that the parser refused are nested too deep.

    libyaml looks ahead in nested lists and has its own limit: its error may come before the first event.
    """
    depth = 0
    with suppress(yaml.YAMLError):
        for token in yaml.scan(text, Loader=yaml.SafeLoader):
            depth += isinstance(token, _STARTS) - isinstance(token, _ENDS)
            if depth > MAX_DEPTH:
                raise Unreadable(f"nested more than {MAX_DEPTH} deep", token.start_mark.line + 1)


def _line(marked: yaml.Node | yaml.Event) -> int:
    return marked.start_mark.line + 1 if marked.start_mark else 0


def _unreadable(error: yaml.MarkedYAMLError, text: str) -> Unreadable:
    mark = error.problem_mark or error.context_mark
    problem = " ".join(part for part in (error.context, error.problem) if part)
    if mark is None:
        return Unreadable(f"not YAML: {problem}")
    place, line = f"line {mark.line + 1}, column {mark.column + 1}", mark.line
    what = "quote" if "quoted" in (error.context or "") else "bracket"
    opened = error.context_mark if what == "quote" else _open_bracket(text)
    if opened is not None and opened.line < mark.line:
        begin = f"line {opened.line + 1}, column {opened.column + 1}"
        place += f"; the {what} that is open there begins in {begin}"
        # The end of the text says nothing about the place of the mistake.
        line = opened.line if mark.index >= len(text.rstrip()) else line
    hint = "quote values that hold ${...}, a colon or start with a special character, and indent with spaces"
    return Unreadable(f"not YAML: {problem} in {place}", line + 1, hint)


def _open_bracket(text: str) -> Any:
    """Return the place of the innermost bracket that is not closed where the tokens end, or None."""
    places = []
    with suppress(yaml.YAMLError):
        for token in yaml.scan(text, Loader=yaml.SafeLoader):
            if isinstance(token, yaml.FlowMappingStartToken | yaml.FlowSequenceStartToken):
                places.append(token.start_mark)
            elif isinstance(token, yaml.FlowMappingEndToken | yaml.FlowSequenceEndToken):
                del places[-1:]
    return places[-1] if places else None


class _Builder:
    """Turns PyYAML's nodes into plain values; faults do not stop it."""

    def __init__(self) -> None:
        self.document = Document()

    def build(self, node: yaml.Node, key: Key, around: tuple[yaml.Node, ...]) -> Any:
        self._enter(node, around)
        if isinstance(node, yaml.MappingNode) and node.tag == _TAG + "map":
            return self._mapping(node, key, (*around, node))
        if isinstance(node, yaml.SequenceNode) and node.tag == _TAG + "seq":
            return self._sequence(node, key, (*around, node))
        return self._scalar(node, key)

    def _enter(self, node: yaml.Node, around: tuple[yaml.Node, ...]) -> None:
        """Count a node each time it is read, also through an alias or a merge. Raises Unreadable."""
        self.document.size += 1
        if any(node is outer for outer in around):
            raise Unreadable("an alias contains itself", _line(node))
        if self.document.size > MAX_VALUES:
            problem = (
                f"too large: more than {MAX_VALUES:,} values, with each use of an alias or merge counted"
            )
            raise Unreadable(problem, _line(node))
        if len(around) > MAX_DEPTH:
            raise Unreadable(f"nested more than {MAX_DEPTH} deep by its aliases", _line(node))

    def _mapping(self, node: yaml.MappingNode, key: Key, around: tuple[yaml.Node, ...]) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for name, name_node, value_node in self._pairs(node, key, around):
            inner = (*key, name)
            self.document.lines[inner] = _line(name_node)
            result[name] = self.build(value_node, inner, around)
        return result

    def _sequence(self, node: yaml.SequenceNode, key: Key, around: tuple[yaml.Node, ...]) -> list[Any]:
        result = []
        for index, item in enumerate(node.value):
            inner = (*key, str(index))
            self.document.lines[inner] = _line(item)
            result.append(self.build(item, inner, around))
        return result

    def _scalar(self, node: yaml.Node, key: Key) -> Any:
        if node.tag == _TAG + "str":
            return node.value
        form = _FORMS.get(node.tag)
        if form and isinstance(node.value, str) and form.fullmatch(node.value):
            return _VALUES[node.tag](node.value)
        self._fault(key, node, f"the tag {node.tag.replace(_TAG, '!!')} is not understood here")
        return UNKNOWN

    def _pairs(
        self, node: yaml.MappingNode, key: Key, around: tuple[yaml.Node, ...]
    ) -> list[tuple[str, yaml.Node, yaml.Node]]:
        """(name, its node, the value's node) of each entry; first those of `<<` that are not given here."""
        own: dict[str, tuple[str, yaml.Node, yaml.Node]] = {}
        merged: dict[str, tuple[str, yaml.Node, yaml.Node]] = {}
        for name_node, value_node in node.value:
            if name_node.tag == _MERGE:
                for pair in self._merged(value_node, key, around):
                    merged.setdefault(pair[0], pair)
            elif not isinstance(name_node, yaml.ScalarNode):
                self._fault(key, name_node, "found a list or mapping, expected a key")
            elif name_node.value in own:
                first, second = _line(own[name_node.value][1]), _line(name_node)
                problem = (
                    f"the key {dotted((name_node.value,))} is given twice, in lines {first} and {second}"
                )
                self._fault((*key, name_node.value), name_node, problem, "keep one of them")
            else:
                own[name_node.value] = (name_node.value, name_node, value_node)
        return [*(pair for name, pair in merged.items() if name not in own), *own.values()]

    def _merged(
        self, node: yaml.Node, key: Key, around: tuple[yaml.Node, ...]
    ) -> list[tuple[str, yaml.Node, yaml.Node]]:
        sources = node.value if isinstance(node, yaml.SequenceNode) else [node]
        pairs = []
        for source in sources:
            self._enter(source, around)
            if isinstance(source, yaml.MappingNode):
                found = self._pairs(source, key, (*around, source))
                # Few of these values are built, but gathering them takes the time.
                self.document.size += len(found)
                pairs += found
            else:
                self._fault(key, source, "`<<` takes a mapping or a list of mappings")
        return pairs

    def _fault(self, key: Key, node: yaml.Node, problem: str, hint: str = "") -> None:
        self.document.faults.append((key, _line(node), problem, hint))
