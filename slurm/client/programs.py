"""The only place that starts Slurm's programs.

Nothing else in the package calls sbatch, squeue, scontrol, sinfo, sacct or scancel, so every missing program,
refusal and timeout becomes a SchedulerError with Slurm's own message.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from getpass import getuser
from pathlib import Path
from time import monotonic as _now
from time import sleep as _sleep
from typing import TypeVar

from slurm.client import account_limits, parse
from slurm.client.account_limits import Association, Qos
from slurm.client.parse import Accounted, HostGroup, HostUse, Job, Partition
from toolkit.errors import RunBusy, SchedulerError, SlurmRefused, SlurmUnavailable, UserError

TIMEOUT_S = 30.0
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.5, 15.0
#: Seconds for srun to cancel its job after SIGTERM.
_CANCEL_TIMEOUT_S = 10.0
#: slurmd refuses a job that starts in the same second in which its last start was killed ("job credential
#: revoked"), and it fails for good (measured, 22.05). Some more seconds, because hosts' clocks differ.
RELEASE_DELAY_S = 5

#: Prefixes of variables with a user's preferences: they change the output, or let scancel ask questions.
_PREFERENCES = ("SQUEUE_", "SACCT_", "SINFO_", "SCONTROL_", "SCANCEL_")
#: More of these variables. SLURM_CLUSTERS would send queries to another cluster than the jobs.
_OTHER_PREFERENCES = frozenset({"SLURM_TIME_FORMAT", "SLURM_CLUSTERS"})
#: Error messages of a client that did not reach the controller, or lost the connection.
_NO_ANSWER = re.compile(
    "unable to contact slurm controller|unable to establish|could not establish|unable to resolve|"
    "socket timed out|connection (refused|timed out)|connect failure|zero bytes were transmitted|"
    "unexpected message received|temporarily unable|communication connection failure|"
    "error sending/receiving|insane message length|protocol authentication error",
    re.IGNORECASE,
)
#: The subset of these messages after which the request may have been executed nevertheless.
_LOST_ANSWER = re.compile(
    "socket timed out|unexpected message received|temporarily unable|zero bytes were transmitted|"
    "error sending/receiving|communication connection failure",
    re.IGNORECASE,
)
_USAGE = re.compile(r"\s*(usage:|try ['\"].*--help)", re.IGNORECASE)


_T = TypeVar("_T")


class AnswerLost(SlurmUnavailable):
    """The answer was lost, so the request may have been executed: check before repeating it."""


def call(
    *command: str, timeout_s: float = TIMEOUT_S, cwd: Path | None = None, env: Mapping[str, str] | None = None
) -> str:
    """Run one of Slurm's programs; return its standard output.

    Raises SlurmUnavailable for a missing program or a controller that does not answer, AnswerLost if the
    request may have been executed nevertheless, and SlurmRefused for any other failure.
    """
    return _run(command, timeout_s, None, cwd, env)[0]


def patiently(ask: Callable[[], _T], patience_s: float) -> _T:
    """Call `ask`, and repeat it with growing pauses while no controller answers; return its result.

    Also repeats while another process submits the same run. Only for requests that may be made twice. After
    patience_s seconds, raises the last error.
    """
    deadline, pause = _now() + patience_s, _FIRST_PAUSE_S
    while True:
        try:
            return ask()
        except (SlurmUnavailable, RunBusy):
            if _now() + pause > deadline:
                raise
        _sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE_S)


def is_installed() -> bool:
    """Whether Slurm's programs are on PATH."""
    return shutil.which("scontrol") is not None


def is_available(timeout_s: float = 5.0) -> bool:
    """Whether a controller answers; False without a call if Slurm is not installed."""
    if not is_installed():
        return False
    try:
        return " is UP" in call("scontrol", "ping", timeout_s=timeout_s)
    except SchedulerError:
        return False


def sbatch(
    script: Path,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    *,
    options: Iterable[str] = (),
) -> str:
    """Submit a batch script and return the job's id.

    Raises AnswerLost if the job may exist although its id is unknown; the caller must look for its
    name before submitting again.
    """
    answer = call("sbatch", "--parsable", *options, str(script), cwd=cwd, env=env)
    # A site's submit filter may print more lines; in a federation the cluster name follows the id.
    found = re.findall(r"^(\d+)(?:;\S*)?$", answer, re.MULTILINE)
    if not found:
        raise AnswerLost(f"sbatch answered without a job id: {answer.strip()!r}")
    return str(found[-1])


def test_only(script: str, env: Mapping[str, str] | None = None) -> str:
    """Return the output of `sbatch --test-only`: when and where a script would start. Submits nothing.

    Raises SlurmRefused if Slurm would refuse it. `slurm.submission.checks.preflight` checks more: sbatch
    accepts a time limit above the partition's (measured, 22.05).
    """
    output, errors = _run(("sbatch", "--test-only"), TIMEOUT_S, script, None, env)
    return "\n".join(line.removeprefix("sbatch: ").strip() for line in (errors or output).splitlines())


def jobs(*, ids: Iterable[str] = (), names: Iterable[str] = (), **filters: str) -> list[Job]:
    """Return the jobs in the controller's memory, also ended ones; one call for any number.

    filters  more of squeue's filters by name: user, account, qos

    Jobs must match all given filters; without one, the result is empty. An array gives one job for each
    task, a heterogeneous job one for each component. Unknown and invalid ids are left out.
    """
    asked, names = list(ids), list(names)
    ids = list(filter(parse.is_job_id, asked))
    if asked and not ids:
        return []
    options = [f"--jobs={','.join(ids)}"] if ids else []
    options += [f"--name={','.join(names)}"] if names else []
    options += [f"--{name}={value}" for name, value in filters.items()]
    if not options:
        return []
    fixed = ("--noheader", "--array", "--all", "--states=all", f"--Format={parse.JOB_FORMAT}")
    try:
        return parse.parse_jobs(call("squeue", *fixed, *options))
    except SlurmRefused as refusal:
        # squeue only fails for a single unknown id; of several, it ignores unknown ones.
        if "Invalid job id" in str(refusal):
            return []
        raise


def accounting(ids: Iterable[str]) -> list[Accounted]:
    """Return every start of these jobs, oldest first; empty if accounting is missing or does not answer."""
    if not (ids := list(filter(parse.is_job_id, ids))):
        return []
    fixed = ("--noheader", "--parsable2", f"--delimiter={parse.SEPARATOR}", "--allocations", "--duplicates")
    try:
        text = call("sacct", *fixed, f"--format={parse.ACCOUNTING_FORMAT}", f"--jobs={','.join(ids)}")
    except SchedulerError:
        return []
    return parse.parse_accounting(text)


def cancel(*job_ids: str) -> None:
    """Cancel jobs; an ended or unknown one is not an error. Raises UserError for an invalid job id."""
    _scancel("--", *map(_checked, job_ids))


def numbered_steps(*job_ids: str, timeout_s: float = TIMEOUT_S) -> set[str]:
    """Return the numbers of the steps in jobs that srun has started and Slurm still lists.

    The id of an array alone, without a task, gives the steps of all its tasks; that of a heterogeneous job
    gives those of its first component.
    """
    jobs = ",".join(map(_checked, job_ids))
    fixed = ("--noheader", "--all", "--steps", "--format=%i")
    text = call("squeue", *fixed, f"--jobs={jobs}", timeout_s=timeout_s)
    return set(re.findall(r"^\S+\.(\d+)(?:\+\d+)?\s*$", text, re.MULTILINE))


def signal_steps(job_id: str, name: str) -> None:
    """Send a signal to every task of a job's steps, not to its batch script; an ended job is not an error."""
    _scancel(f"--signal={name}", "--", _checked(job_id))


def _scancel(*words: str) -> None:
    try:
        call("scancel", *words)
    except SlurmRefused as refusal:
        if not re.search("Invalid job id|already completing or completed", str(refusal)):
            raise


def requeue(job_id: str, timeout_s: float = TIMEOUT_S) -> None:
    """Requeue a running job; a job that is already pending is not an error.

    For an array task, job_id is ARRAY_TASK: the id of an array alone requeues all of its tasks.
    """
    try:
        call("scontrol", "requeue", _checked(job_id), timeout_s=timeout_s)
    except SlurmRefused as refusal:
        if "pending execution" not in str(refusal):
            raise


def release_now(job_id: str) -> None:
    """Make a requeued job eligible in a few seconds instead of two minutes; it must be pending.

    While it is completing, Slurm accepts the request but ignores it.
    """
    call("scontrol", "update", f"jobid={_checked(job_id)}", f"starttime=now+{RELEASE_DELAY_S}")


def dependencies(user: str) -> dict[str, str]:
    """Return the dependencies of a user's (name or number) waiting jobs, by id and in sbatch's words."""
    text = call("squeue", "--noheader", "--all", "--states=PENDING", f"--user={user}", "--format=%i|%E")
    return parse.parse_dependencies(text)


def depend_on(job_id: str, dependency: str) -> None:
    """Change the dependency of a pending job. Raises SlurmRefused if it has started."""
    call("scontrol", "update", f"jobid={_checked(job_id)}", f"dependency={dependency}")


def exclude_hosts(job_id: str, hosts: Sequence[str], timeout_s: float = TIMEOUT_S) -> None:
    """Let a pending job not start on these hosts either. Raises SchedulerError."""
    known = show_job(job_id, timeout_s).get("ExcNodeList", "").removeprefix("(null)")
    wanted = ",".join(filter(None, [known, *hosts]))
    call("scontrol", "update", f"jobid={_checked(job_id)}", f"excnodelist={wanted}", timeout_s=timeout_s)


def show_job(job_id: str, timeout_s: float = TIMEOUT_S) -> dict[str, str]:
    """Return the controller's record of a job; of an array or a heterogeneous job, its first record."""
    return parse.parse_job(call("scontrol", "--all", "show", "job", _checked(job_id), timeout_s=timeout_s))


def partitions(timeout_s: float = TIMEOUT_S) -> list[Partition]:
    """Return all partitions, including hidden ones."""
    command = ("scontrol", "--all", "--oneliner", "show", "partition")
    return parse.parse_partitions(call(*command, timeout_s=timeout_s))


def hosts() -> list[HostGroup]:
    """Return the hosts of all partitions, in groups of equal hosts."""
    return parse.parse_hosts(call("sinfo", "--all", "--noheader", "--exact", f"--format={parse.HOST_FORMAT}"))


def uses(timeout_s: float = TIMEOUT_S) -> list[HostUse]:
    """Return the current use of the hosts of all partitions."""
    command = ("sinfo", "--all", "--noheader", "--exact", f"--Format={parse.USE_FORMAT}")
    return parse.parse_uses(call(*command, timeout_s=timeout_s))


def is_any_down(hosts: str, timeout_s: float = TIMEOUT_S) -> bool:
    """Whether one of these hosts (a host list) is down or, as the * shows, does not respond."""
    states = call(
        "sinfo", "--all", "--noheader", f"--nodes={hosts}", "--Format=StateLong", timeout_s=timeout_s
    )
    return "*" in states or any(word.startswith("down") for word in states.split())


def all_qos(timeout_s: float = TIMEOUT_S) -> list[Qos]:
    """Return every QOS. Raises SchedulerError if accounting is missing or does not answer."""
    what = f"format={account_limits.QOS_FORMAT}"
    return account_limits.parse_qos(_sacctmgr("qos", what, timeout_s=timeout_s))


def associations(user: str, cluster: str, timeout_s: float = TIMEOUT_S) -> list[Association]:
    """Return a user's associations with a cluster. Raises SchedulerError as `all_qos` does."""
    whose, what = (f"user={user}", f"cluster={cluster}"), f"format={account_limits.ASSOCIATION_FORMAT}"
    return account_limits.parse_associations(_sacctmgr("assoc", *whose, what, timeout_s=timeout_s))


def _sacctmgr(*what: str, timeout_s: float = TIMEOUT_S) -> str:
    return call("sacctmgr", "--noheader", "--parsable2", "show", *what, timeout_s=timeout_s)


def step(
    options: Iterable[str], command: Iterable[str], *, name: str, timeout_s: float, env: Mapping[str, str]
) -> tuple[str, str]:
    """Run a command in a new job with this name, and wait; return its output and srun's error message.

    The message is empty on success. The job never outlives this call, even after Ctrl-C: srun cancels
    its job on SIGTERM, and otherwise the job is cancelled by its name.
    """
    full = ("srun", f"--job-name={name}", *options, *command)
    process = None
    try:
        process = _start(full, False, None, env)
        return _outcome(process, full, timeout_s)
    finally:
        if process is None or process.returncode != 0:
            if process is not None:
                _end(process)
            with suppress(SchedulerError):
                call("scancel", f"--name={name}", f"--user={getuser()}")


def _outcome(process: subprocess.Popen[str], command: tuple[str, ...], timeout_s: float) -> tuple[str, str]:
    try:
        output, errors = process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        process.terminate()
        output = ""
        with suppress(subprocess.TimeoutExpired):
            output = process.communicate(timeout=_CANCEL_TIMEOUT_S)[0]
        return output, f"no answer in {timeout_s:g} s"
    return output, str(_failure(command[:1], process.returncode, errors)) if process.returncode else ""


def config(timeout_s: float = TIMEOUT_S) -> dict[str, str]:
    return parse.parse_config(call("scontrol", "show", "config", timeout_s=timeout_s))


def qos_flags(name: str) -> frozenset[str] | None:
    """Return the flags of a QOS; None if accounting does not answer or has no such QOS."""
    try:
        return next((each.flags for each in all_qos() if each.name == name.lower()), None)
    except SchedulerError:
        return None


def submit_limit(user: str, account: str | None, qos: str | None) -> tuple[int, str, str] | None:
    """Return how many jobs a user may have in the queue, and what limits them: qos or account, and its name.

    account, qos   None: the user's own default
    A limit of the QOS replaces that of the account, as in Slurm. None without one, or if accounting does not
    answer.
    """
    try:
        # One database may serve several clusters.
        here = f"cluster={config().get('ClusterName', '')}"
        lines = _sacctmgr("assoc", f"user={user}", here, "format=Account,Partition,DefaultQOS,MaxSubmitJobs")
        account = account or _sacctmgr("user", user, "format=DefaultAccount").strip()
        rows = [line.split("|") for line in lines.splitlines() if line.count("|") == 3]
        # A row with a partition only limits jobs there.
        own = [row[2:] for row in rows if row[:2] == [account.lower(), ""]]
        qos = qos or next((default for default, _ in own if default), "normal")
        of_qos = _sacctmgr("qos", qos, "format=MaxSubmitJobsPerUser").strip()
    except SchedulerError:
        return None
    limits = [(of_qos, "qos", qos), *((limit, "account", account) for _, limit in own)]
    return next(((int(limit), kind, name) for limit, kind, name in limits if limit.isdecimal()), None)


def _checked(job_id: str) -> str:
    """Return a valid job id unchanged. Raises UserError for others, which may be read as options."""
    if not parse.is_job_id(job_id):
        raise UserError(f"{job_id[:100]!r} is not a job id: expected a number, as in 12, 12_3 or 12+1")
    return job_id


def _run(
    command: tuple[str, ...],
    timeout_s: float,
    input: str | None,
    cwd: Path | None,
    env: Mapping[str, str] | None,
) -> tuple[str, str]:
    """Run a program; return its standard output and error. Raises SchedulerError if it fails."""
    process = _start(command, input is not None, cwd, os.environ if env is None else env)
    try:
        output, errors = process.communicate(input, timeout_s)
    except subprocess.TimeoutExpired:
        raise AnswerLost(f"no answer in {timeout_s:g} s from: {shlex.join(command)}") from None
    finally:
        _end(process)
    if process.returncode:
        raise _failure(command, process.returncode, errors or output)
    return output, errors


def _start(
    command: tuple[str, ...], has_input: bool, cwd: Path | None, env: Mapping[str, str]
) -> subprocess.Popen[str]:
    try:
        return subprocess.Popen(
            command,
            stdin=subprocess.PIPE if has_input else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            cwd=cwd,
            env=_without_preferences(env),
            start_new_session=True,  # so that a wrapper script is ended with everything it started
        )
    except FileNotFoundError:
        if cwd is not None and not cwd.is_dir():
            raise SlurmRefused(f"{shlex.join(command)}: the folder {cwd} does not exist") from None
        raise SlurmUnavailable(
            f"{command[0]} is not on PATH: Slurm is not installed here, or needs `module load`. "
            "Run this on a login node, or use --cluster local"
        ) from None
    except OSError as error:
        raise SlurmUnavailable(f"{command[0]} cannot be started: {error}") from None


def _without_preferences(env: Mapping[str, str]) -> dict[str, str]:
    return {
        name: value
        for name, value in env.items()
        if name not in _OTHER_PREFERENCES and not name.startswith(_PREFERENCES)
    }


def _end(process: subprocess.Popen[str]) -> None:
    """Kill a program that still runs, with its process group, and close its pipes."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream is not None and not stream.closed:
            stream.close()


def _failure(command: tuple[str, ...], code: int, errors: str) -> SchedulerError:
    lines = [line.rstrip() for line in errors.splitlines() if line.strip() and not _USAGE.match(line)]
    words = "\n".join(f"  {line}" for line in lines) or "  (no message)"
    shown = shlex.join(command)
    if _NO_ANSWER.search(errors):
        kind = AnswerLost if _LOST_ANSWER.search(errors) else SlurmUnavailable
        return kind(f"Slurm's controller cannot be reached: {shown}\n{words}")
    if code < 0:
        # If a job requeues itself, Slurm ends the job before the answer comes, and this program with it.
        return AnswerLost(f"ended by signal {-code} before it had answered: {shown}\n{words}")
    return SlurmRefused(f"Slurm refused (exit code {code}): {shown}\n{words}")
