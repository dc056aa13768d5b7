"""Quote text for sbatch's option parser and for a shell."""

from __future__ import annotations

import re
import shlex

from toolkit.config.secrets import split_references
from toolkit.errors import Fault, UserError

_PLAIN = re.compile(r"[A-Za-z0-9_@%+=:,./^&|!*\[\]()-]+")


def directive(name: str, value: object) -> str:
    """Return one #SBATCH line; True means a flag without a value.

    Raises UserError for a line break or NUL, which sbatch cannot read in any quoting.
    """
    if value is True:
        return f"#SBATCH --{name}"
    text = str(value)
    if any(character in text for character in "\n\r\0"):
        fault = Fault(key=f"--{name}", problem=f"{text!r} holds a line break or NUL", origin="batch script")
        raise UserError(f"{fault}: sbatch reads its options line by line. Choose another value.")
    if not _PLAIN.fullmatch(text):
        # sbatch's quoting: between double quotes a backslash keeps the next character as it is.
        text = '"' + re.sub(r'(["\\])', r"\\\1", text) + '"'
    return f"#SBATCH --{name}={text}"


def export(name: str, value: str) -> str:
    """Return a shell line that sets a variable to any value, also with line breaks.

    Raises UserError for NUL, which no variable can contain.
    """
    if "\0" in value:
        fault = Fault(key=name, problem=f"{value!r} holds NUL", origin="environment")
        raise UserError(f"{fault}: no variable can hold it. Choose another value.")
    return f"export {name}={_shell_text(value)}"


def _shell_text(value: str) -> str:
    """Return a value for the shell; a secret becomes a reference to the job's own environment."""
    words = ""
    for part, is_name in split_references(getattr(value, "reference", value)):
        if is_name:
            words += f'"${{{part}?is not set where the job was submitted}}"'
        else:
            # sbatch refuses a script with a carriage return before a line break, also between quotes.
            words += shlex.quote(part).replace("\r", r"'$'\r''")
    return words or "''"
