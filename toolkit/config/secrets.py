"""Recognize variables that hold secrets, and replace their values in texts by references.

A value from such a variable is replaced by a reference, `${oc.env:NAME}`, in everything that is written
and in the identity. The value itself is only in memory.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from typing import Any

from toolkit.config.origins import Key, dotted, leaves
from toolkit.errors import UserError

#: Words that only names of secrets contain.
_ANYWHERE = r"PASSW(OR)?D|PASSPHRASE|SECRET|CREDENTIAL|APIKEY|WEBHOOK"
#: Ends of names; those of the second group only as a whole word: MONKEY is not a key.
_ENDS = r"(TOKEN|(?<!OLD)(?<=.)PWD|(^|_)(KEYS?|PASS|AUTH|PAT|COOKIE|BEARER))(_ID|_?\d+)?$"
#: Services with an address that usually contains a password.
_SERVICES = r"DATABASE|DB|PG|POSTGRES|MYSQL|MARIADB|MONGO|REDIS|AMQP|RABBITMQ|BROKER|SQLALCHEMY|INDEX"
_ADDRESS = rf"(^|_)(({_SERVICES})\w*(URL|URI)(_?\d+)?|DSN(_ID|_?\d+)?)$"
_SECRET = re.compile(rf"{_ANYWHERE}|{_ENDS}|{_ADDRESS}")
#: A value that is no name, word, path, file name or address: at least 12 characters, with letters and digits.
_UNMISTAKABLE = re.compile(
    r"(?=\D*\d)(?=[^A-Za-z]*[A-Za-z])(?!\w+://|\$\{)(?!\S*(:\d+(/\S*)?|\.\w{1,11})$)[^\s/~.<\[]\S{11,}"
)
#: A key of a data set or of a cache, whose value is no secret.
_OF_DATA = re.compile(r"(?!.*(API|ACCESS|SECRET|PRIVATE)).*KEYS?")
#: The variable of an address, and signs of a password in it; without them the address is no secret.
_OF_ADDRESS, _WITH_PASSWORD = re.compile(rf"(?!.*({_ANYWHERE})).*{_ADDRESS}"), re.compile("[@:;=/]")
#: The variable of an account, and a value that is its name; other values are as random as its secret.
_OF_ACCOUNT = re.compile(rf"(?!.*({_ANYWHERE}|API|PRIVATE|STORAGE)).*ACCESS_KEY(_ID)?(_?\d+)?")
_WORDS = re.compile(r"[a-z]+\d{0,4}([-_]([a-z]+\d{0,4}|\d{1,4}))+")
#: Minimum length of a value that is searched for in texts.
_SHORTEST = 6
#: Why a secret is refused.
RECORDED = "a secret must not be in an experiment, which is recorded"
_REFERENCE = re.compile(r"\$\{oc\.env:([A-Za-z_][A-Za-z0-9_]*)\}")
#: Matches only from the beginning of a word; otherwise a long word would take quadratic time.
_PASSWORD_IN_URL = re.compile(r"(?<![A-Za-z0-9+.-])([A-Za-z0-9+.-]+://[^\s/:@]*):([^\s/@]+)@")


def is_secret(name: str) -> bool:
    """Whether a variable of this name is considered a secret."""
    return _SECRET.search(name.upper()) is not None


def reference(name: str) -> str:
    """Return the reference to a variable in a text."""
    return f"${{oc.env:{name}}}"


def referred(text: str) -> tuple[str, ...]:
    """The secret variables that a text names."""
    return tuple(name for name in _REFERENCE.findall(text) if is_secret(name))


def split_references(text: str) -> list[tuple[str, bool]]:
    """The text in parts: names of secret variables, marked by True, and the text between them."""
    parts, end = [], 0
    for match in _REFERENCE.finditer(text):
        if is_secret(match[1]):
            parts += [(text[end : match.start()], False), (match[1], True)]
            end = match.end()
    return [(part, is_name) for part, is_name in [*parts, (text[end:], False)] if part]


class Secret(str):
    """A text with a value that must not be written: `reference` replaces it."""

    reference: str

    def __new__(cls, value: str, reference: str) -> Secret:
        """A text with this value."""
        secret = super().__new__(cls, value)
        secret.reference = reference
        return secret

    def __reduce__(self) -> tuple[type[Secret], tuple[str, str]]:
        return Secret, (str(self), self.reference)


def with_secrets(text: str, environ: Mapping[str, str] = os.environ) -> str:
    """The text with the values of the secret variables that it names; unchanged if one is not set."""
    # A plain str, because YAML cannot write other classes.
    text = str(text)
    names = referred(text)
    if not names or any(name not in environ for name in names):
        return text

    def value(match: re.Match[str]) -> str:
        return environ[match[1]] if is_secret(match[1]) else match[0]

    return Secret(_REFERENCE.sub(value, text), text)


def require_secrets(plain: Mapping[str, Any]) -> None:
    """Raise UserError if a secret variable that a plain experiment names is not set."""
    missing: dict[str, list[str]] = {}
    for key, text in texts(plain):
        for name in referred(text):
            if name not in os.environ:
                missing.setdefault(name, []).append(dotted(key))
    if missing:
        named = "; ".join(f"{name}, which {', '.join(keys)} takes" for name, keys in missing.items())
        raise UserError(
            f"an environment variable is not set: {named}. The run has recorded its name and not its value, "
            "which may be a secret: export it in the shell that starts or submits the run."
        )


def texts(plain: Any, key: Key = ()) -> Iterator[tuple[Key, str]]:
    """The texts within a plain value, with their keys."""
    return ((tuple(map(str, place)), leaf) for place, leaf in leaves(plain, key) if isinstance(leaf, str))


def concealed(text: str, environ: Mapping[str, str] = os.environ) -> str:
    """The text without passwords in URLs and with the names of secret variables in place of their values."""
    for name, value in environ.items():
        # A shorter value may be part of other words by chance.
        if len(value) >= _SHORTEST and value in text and is_secret(name):
            text = text.replace(value, reference(name))
    return masked(text)


def exposed() -> dict[str, re.Pattern[str]]:
    """The secret variables with unmistakable values, each with a pattern that finds its value in a text.

    Within a longer word, or as a part of a path, file name or address, the same characters are no secret.
    """
    return {
        name: re.compile(rf"(?<![\w.-])(?<![^/]/){re.escape(value)}(?![\w/-]|\.\w|:\d)")
        for name, value in os.environ.items()
        if _UNMISTAKABLE.fullmatch(value) and is_secret(name) and not _is_name(value, name.upper())
    }


def _is_name(value: str, variable: str) -> bool:
    """Whether a value names data, a host or an account, in a variable for that."""
    if _OF_ADDRESS.fullmatch(variable):
        return _WITH_PASSWORD.search(value) is None
    is_account = _OF_ACCOUNT.fullmatch(variable) is not None and _WORDS.fullmatch(value) is not None
    return is_account or _OF_DATA.fullmatch(variable) is not None


def masked(text: str) -> str:
    """The text without the passwords of its URLs."""
    return _PASSWORD_IN_URL.sub(r"\1:***@", text)
