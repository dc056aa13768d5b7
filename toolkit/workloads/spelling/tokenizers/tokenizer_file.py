"""The JSON file of a tokenizer. Imports no numpy, which takes time."""

from __future__ import annotations

from pathlib import Path

from tokenizers import Tokenizer

from toolkit.errors import DataError
from toolkit.workloads.spelling.tokenizers.make_tokenizer import SPECIAL


def read_tokenizer(path: Path) -> Tokenizer:
    """Read a tokenizer. Raises DataError, also if it lacks a special token."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path} cannot be read: {error}") from error
    try:
        tokenizer = Tokenizer.from_str(text)
    except BaseException as error:
        # The library raises plain exceptions, and a BaseException of its own if it fails within.
        if isinstance(error, KeyboardInterrupt | SystemExit):
            raise
        raise DataError(f"{path} is not a tokenizer of the tokenizers library: {error}") from error
    if missing := [token for token in SPECIAL if tokenizer.token_to_id(token) is None]:
        raise DataError(f"{path} lacks {', '.join(missing)}; make it with `stk spelling tokenizer`")
    return tokenizer


def characters_expected(path: str, kind: str) -> str:
    """Say that a task of this kind needs another tokenizer."""
    return (
        f"{path} has no token for a space, expected one of single characters for {kind} "
        "(`stk spelling tokenizer characters`)"
    )
