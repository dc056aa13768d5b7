"""Starting a step again in the job that it had: what the batch script and `slurm.after_step` agree on."""

from __future__ import annotations

from toolkit.files import read_json_lines
from toolkit.rundir import RunDir

#: The word by which a batch script says that it can start the step again.
IN_PLACE = "in-place"

#: The status that asks it to; no error of this project has it.
EXIT_AGAIN = 79

#: In events.jsonl: a step is started again in its job.
EVENT = "started_in_place"


def attempts_before(run: RunDir, job_id: str, restart: int) -> int:
    """The number of the newest start of this job that another step was to follow; 0 where there is none."""
    events = (line for line in read_json_lines(run.events) if line.get("event") == EVENT)
    own = [line["attempt"] for line in events if (line["job_id"], line["restart"]) == (job_id, restart)]
    return max(own, default=0)
