"""The number of runs that Slurm takes from this user now."""

from __future__ import annotations

import getpass

from slurm.client import programs
from slurm.client.queue import TERMINAL, from_controller
from slurm.config.resources import Resources
from slurm.submission.checks.preflight import Facts
from slurm.submission.job_options import components


def free_slots(resources: Resources, facts: Facts) -> tuple[int | None, str]:
    """Return the number of further jobs the user may submit, and the limit; None if none is known.

    What other users have in the queue, and limits of a whole account, cannot be known from outside: sbatch
    says so, when it is asked.
    """
    slots, why = facts.max_jobs, f"MaxJobCount is {facts.max_jobs}"
    if not facts.limits_submits:
        return slots, why
    options, user = components(resources)[0].options, getpass.getuser()
    account, qos = (str(options[name]) if options.get(name) else None for name in ("account", "qos"))
    limits = programs.submit_limits(user, account, qos)
    if not limits:
        return slots, why
    queued = sum(from_controller(job).state not in TERMINAL for job in programs.jobs(user=user))
    left = max(0, min(limits) - queued)
    if slots is not None and slots <= left:
        return slots, why
    return left, f"MaxSubmitJobs is {min(limits)}, and {queued} jobs of yours are in the queue"
