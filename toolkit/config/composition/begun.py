"""Lists and mappings of which overrides set single entries, as `betas.0=0.8` if no `betas` is written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from toolkit.config.origins import Key, Origins, index_in, no_index


class Begun(dict[str, Any]):
    """The entries that overrides set. The other entries are those of the key's default."""


class NoEntry(Exception):
    """An index that a list does not have; `key` is that of the entry."""

    def __init__(self, key: Key, length: int) -> None:
        super().__init__(no_index(key[:-1], length))
        self.key = key


def marked(value: Any, key: Key, origins: Origins) -> Any:
    """A copy of a tree in which each mapping that overrides began is a Begun."""
    if isinstance(value, list):
        return [marked(inner, (*key, str(index)), origins) for index, inner in enumerate(value)]
    if not isinstance(value, dict):
        return value
    inner = {name: marked(inner, (*key, str(name)), origins) for name, inner in value.items()}
    return Begun(inner) if origins.is_begun(key) else inner


def with_entries(default: Sequence[Any], entries: dict[str, Any], key: Key) -> list[Any]:
    """A list with some entries replaced or appended. Raises NoEntry."""
    items = list(default)
    for name in sorted(entries, key=lambda name: index_in(name) or 0):
        index = index_in(name)
        if index is None or index > len(items):
            raise NoEntry((*key, name), len(items))
        items[index : index + 1] = [entries[name]]
    return items


def filled(value: Any, default: Any, key: Key) -> Any:
    """An untyped value with the entries of its default that overrides did not set.

    Without a default, a mapping that overrides began is a list if its keys are 0 to n - 1. Raises NoEntry.
    """
    if isinstance(value, list):
        return [filled(inner, None, (*key, str(index))) for index, inner in enumerate(value)]
    if not isinstance(value, dict):
        return value
    is_begun = isinstance(value, Begun)
    is_list = is_begun and isinstance(default, list | tuple)
    known: dict[str, Any] = {}
    if is_begun and isinstance(default, dict):
        known = default
    elif is_list:
        known = {str(index): inner for index, inner in enumerate(default)}
    inner = {name: filled(inner, known.get(name), (*key, str(name))) for name, inner in value.items()}
    # A parameter with a list as its default may also take a mapping, which replaces it.
    are_indexes = [index_in(name) is not None for name in inner]
    if is_list and (all(are_indexes) or (known and any(are_indexes))):
        return with_entries(default, inner, key)
    if is_list:
        return inner
    if is_begun and not isinstance(default, dict) and all(str(index) in inner for index in range(len(inner))):
        return [inner[str(index)] for index in range(len(inner))]
    return {**known, **inner}
