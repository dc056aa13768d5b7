"""stk reproduce"""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from slurm.commands.common import warn
from slurm.runs.reproduce_script import gather, script
from toolkit.errors import UserError
from toolkit.files import write_atomic
from toolkit.run.run_dir import find_run


def run(arguments: Namespace) -> int:
    target = find_run(arguments.run)
    facts = gather(target, force=arguments.force)
    if not facts.verified:
        gone = f"the prepared data of {target.run_id} are gone, so it is not known whether its data files"
        warn([f"{gone} have changed; stk diff shows it after the new run"])
    text = script(facts)
    if arguments.output is None:
        print(text, end="")
        return 0
    try:
        write_atomic(Path(arguments.output), text)
    except OSError as error:
        raise UserError(f"cannot write {arguments.output}: {error.strerror or error}") from error
    print(f"wrote {arguments.output}: bash {arguments.output} repeats {target.run_id}")
    return 0
