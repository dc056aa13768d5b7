"""Restart of a step within its job: what the batch script and `slurm.job.decide_restart` agree on."""

from __future__ import annotations

from toolkit.run.events import read_events
from toolkit.run.run_dir import RunDir

#: The word by which a batch script says that it can start the step again.
IN_PLACE = "in-place"

#: In events.jsonl: a step is started again in its job.
EVENT = "started_in_place"


def attempts_before(run: RunDir, job_id: str, restart: int) -> int:
    """The number of the newest start of this job that another step was to follow; 0 where there is none."""
    events = [event.facts for event in read_events(run, EVENT)]
    own = [facts["attempt"] for facts in events if (facts["job_id"], facts["restart"]) == (job_id, restart)]
    return max(own, default=0)
