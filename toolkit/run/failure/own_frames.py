"""Frames of a traceback that are of the user's own code."""

from __future__ import annotations

import re
import traceback

#: Folders of frames that are of the toolkit, in a library, or in code that torch.compile generated.
_FOREIGN = r"/(?:toolkit|code/slurm|lib\d*/python[\d.]+t?|torchinductor_[^/]*)/"
_FILE = rf"(?!.*{_FOREIGN})(?:.*/)?([^/\"<]+)"
#: In the text of a traceback: the file and line of an own frame.
OWN_FRAME = re.compile(rf'File "{_FILE}", line (\d+)')


def own_trace(error: BaseException) -> str:
    """Return the stack trace of an error from the first own frame on; all of it if no frame is own."""
    first = error.__traceback__
    while first is not None and not re.fullmatch(_FILE, first.tb_frame.f_code.co_filename):
        first = first.tb_next
    return "".join(traceback.format_exception(type(error), error, first or error.__traceback__))
