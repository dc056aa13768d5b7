"""Running the main function of a child process: its exit, and its standard output as one document."""

from __future__ import annotations

import errno
import json
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, TextIO

from toolkit.errors import StkError
from toolkit.exit_codes import ExitCode
from toolkit.system.output.sanitize import clean

#: Errors of a write that mean that no more can be written.
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


def process_main(main: Callable[[Sequence[str]], int]) -> NoReturn:
    """Call main with the arguments of this process and exit with the status that it returns."""
    exit_process(main(sys.argv[1:]))


def exit_process(code: int) -> NoReturn:
    """Flush the standard streams and exit at once.

    Not sys.exit: a thread of torch that requests the GIL while the interpreter shuts down would abort the
    process (Python before 3.14), after all work has been done.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def take_stdout(newline: str | None = None) -> TextIO:
    """Return standard output for the caller alone; from now on, all other prints go to standard error."""
    output = os.fdopen(os.dup(1), "w", encoding="utf-8", newline=newline)
    os.dup2(2, 1)
    return output


def exit_status(work: Callable[[], None]) -> int:
    """Do the work of this process; return its exit status. Errors for the user go to standard error.

    A closed pipe is not an error: its reader, such as `head`, has stopped reading.
    """
    try:
        work()
    except StkError as error:
        sys.stderr.write(f"error: {clean(str(error))}\n")
        return error.exit_code
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        return ExitCode.DONE
    except OSError as error:
        if error.filename is None and error.errno not in _FULL:
            raise
        # An error without a file name is one of standard output.
        name = "standard output" if error.filename is None else clean(os.fsdecode(error.filename))
        sys.stderr.write(f"error: {name}: {error.strerror}\n")
        return ExitCode.WRONG_INPUT
    return ExitCode.DONE


def write_answer(answer: Callable[[], Any], **json_options: Any) -> int:
    """Write what `answer` returns to standard output as JSON; return the exit status.

    A StkError becomes a message on standard error and its own exit code.
    """
    document = take_stdout()
    try:
        content = answer()
    except StkError as error:
        sys.stderr.write(f"error: {error}\n")
        return error.exit_code

    def write() -> None:
        with document:
            json.dump(content, document, ensure_ascii=False, **json_options)

    return exit_status(write)
