"""stk submit"""

from __future__ import annotations

import sys
from argparse import Namespace
from dataclasses import asdict

from slurm.commands.common import experiment_file, warn
from slurm.job.save_budget import budgets_of_request, measured_lead_s, too_short
from slurm.status.dependency import waits_for
from slurm.status.submissions import last_resources, last_submission
from slurm.submission.chain import check_links, held, read_links, submit_links
from slurm.submission.checks.early_checks import check_before_queue
from slurm.submission.evaluation import submit_evaluation, words_for
from slurm.submission.submit import Submitted, choose_cluster, submit
from toolkit.checkpoint.finished import finished_result
from toolkit.config import load_with_origins
from toolkit.errors import SchedulerError, SlurmUnavailable, UserError
from toolkit.precheck.changes import change_warnings
from toolkit.run.create_run import run_of
from toolkit.run.kept_code.edited_code import edit_warnings_of_many
from toolkit.run.run_dir import RunDir
from toolkit.sweeps.folder import SweepDir, read_arrays
from toolkit.system.output.json_text import json_text


def run(arguments: Namespace) -> int:
    if arguments.then or arguments.evaluate is not None:
        return _run_chain(arguments)
    experiment, origins = load_with_origins(experiment_file(arguments.config), arguments.overrides)
    target = run_of(experiment)
    cluster = choose(arguments.cluster, target)
    if arguments.fresh or not target.result.exists():
        warn(check_before_queue(experiment, origins, cluster))
    edits = [] if arguments.fresh else change_warnings(target, experiment, new_code=arguments.new_code)
    submitted = submit(experiment, target, cluster, fresh=arguments.fresh, new_code=arguments.new_code)
    # After the submission: a live run is refused, and then the warnings do not apply.
    warn(edits)
    return print_submitted(submitted, arguments.json)


def _run_chain(arguments: Namespace) -> int:
    """Submit runs that follow each other, and the evaluation of the last one."""
    links = read_links([[arguments.config, *arguments.overrides], *arguments.then])
    kind = links[-1].experiment.task.kind
    words = None if arguments.evaluate is None else words_for(arguments.evaluate, kind)
    cluster = choose(arguments.cluster, *(link.run for link in links))
    warn(check_links(links, cluster, fresh=arguments.fresh))
    if not arguments.fresh:
        runs = [(link.run, link.experiment) for link in links]
        warn(edit_warnings_of_many(runs, new_code=arguments.new_code))
    submitted_runs: list[Submitted] = []
    evaluation = None
    try:
        how = {"fresh": arguments.fresh, "new_code": arguments.new_code}
        for submitted in submit_links(links, cluster, **how, last=words is None):
            if not arguments.json:
                print(end="\n" if submitted_runs else "")
                print_submitted(submitted, as_json=False)
            submitted_runs.append(submitted)
        if words is not None:
            with held(links[-1].run, cluster) as awaits:
                evaluation = submit_evaluation(links[-1].run, words, awaits, cluster)
            if not arguments.json:
                print(f"scores  job {evaluation.job_id}, log {evaluation.log}")
    finally:
        # Submitted jobs stay even if a later submission fails, so the caller needs their ids.
        if arguments.json and submitted_runs:
            first, *then = [each.to_json() for each in submitted_runs]
            scores = {"evaluation": asdict(evaluation)} if evaluation else {}
            print(json_text({**first, "then": then, **scores}))
    return 0


def choose(
    wanted: str,
    *targets: RunDir,
    sweep: SweepDir | None = None,
    otherwise: str = "training in local processes",
) -> str:
    """Return slurm or local, as `choose_for`; if auto falls back to local, print the text `otherwise`."""
    cluster = choose_for(wanted, *targets, sweep=sweep)
    is_news = not targets or not all(target.result.exists() for target in targets)
    if wanted == "auto" and cluster == "local" and is_news:
        print(f"No Slurm controller answers here: {otherwise}.", file=sys.stderr)
    return cluster


def choose_for(wanted: str, *targets: RunDir, sweep: SweepDir | None = None) -> str:
    """Return slurm or local, as `choose_cluster`. Raises SlurmUnavailable, also if Slurm may have a job.

    sweep   the sweep of the runs: if it has arrays of Slurm, its new runs do not train here either
    """
    cluster = choose_cluster(wanted)
    if wanted != "auto" or cluster != "local":
        return cluster
    for target in targets:
        last = last_submission(target)
        is_of_slurm = target.intent.exists() or (last is not None and last.cluster == "slurm")
        if is_of_slurm and not target.result.exists():
            job = f" as job {last.job_id}" if last else ""
            raise SlurmUnavailable(
                f"{target.run_id} was submitted to Slurm{job}, and no controller answers, so the job may be "
                "pending or running. Try again later; if the job is gone, use --cluster local"
            )
    if targets and sweep is not None and read_arrays(sweep):
        raise SlurmUnavailable(
            f"the sweep {sweep.name} was submitted to Slurm, and no controller answers. Try again later; "
            "--cluster local trains the waiting runs here, one after the other"
        )
    return cluster


def print_submitted(submitted: Submitted, as_json: bool) -> int:
    """Print the result of a submission, and how to follow it."""
    run, submission = submitted.run, submitted.submission
    if submission is not None and submission.cluster == "slurm":
        warn(measured_warnings(run))
    if as_json:
        print(json_text(submitted.to_json()))
    elif submission is None and submitted.joined is None:
        try:
            finished_result(run)
        except UserError as damaged:
            warn([str(damaged)])
        anew = "stk submit FILE --fresh starts anew"
        print(f"{run.run_id} has finished already: stk report {run.run_id} ({anew})")
    else:
        # Where it is trained, with its state if it was live before.
        where = "a terminal, or another job"
        if submission is not None:
            here = "" if submission.cluster == "slurm" else " (local processes)"
            where = f"{submission.job_id}{here}"
        if submitted.joined is not None:
            where = f"{where}, {submitted.joined} already"
        print(f"run     {run.run_id}\njob     {where}\nfolder  {run.path}")
        if waits := waits_for(run):
            print(f"waits   {waits.removeprefix('waits ')}")
        print(f"follow  stk logs -f {run.run_id}    stk status {run.run_id}")
    return 0


def measured_warnings(run: RunDir) -> list[str]:
    """Return warnings if saves of earlier attempts take longer than the time that the cluster gives."""
    lead_s = measured_lead_s(run)
    if lead_s is None:
        return []
    try:
        return too_short(lead_s, budgets_of_request(last_resources(run)))
    except SchedulerError:
        return []
