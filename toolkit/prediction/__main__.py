"""Predict with a run for another program, with the run's own code:

python -P -m toolkit.prediction RUN_DIR '{"file": …}'
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from toolkit.errors import ExitCode, StkError
from toolkit.prediction.request import Request
from toolkit.run.run_dir import RunDir
from toolkit.system.process_main import process_main, take_stdout
from toolkit.system.sanitize import clean


def main(argv: Sequence[str]) -> int:
    """Do what is asked and return the exit status."""
    # What libraries print must not mix with the predictions.
    output = take_stdout(newline="")
    try:
        # Imported inside the try, since it takes seconds in which Ctrl-C may be pressed.
        from toolkit.prediction.predict import answer

        answer(RunDir(Path(argv[0])), Request(**json.loads(argv[1])), output)
    except StkError as error:
        sys.stderr.write(f"error: {clean(str(error))}\n")
        return error.exit_code
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        # The reader of a pipe, such as `head`, has seen enough.
        return ExitCode.DONE
    except OSError as error:
        if error.filename is None:
            raise
        sys.stderr.write(f"error: {clean(os.fsdecode(error.filename))}: {error.strerror}\n")
        return ExitCode.WRONG_INPUT
    return ExitCode.DONE


if __name__ == "__main__":
    process_main(main)
