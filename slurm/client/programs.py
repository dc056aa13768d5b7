"""The only place that starts Slurm's programs.

Nothing else in the package calls sbatch, squeue, scontrol, sinfo, sacct or scancel, so that every
missing program, refusal and hang becomes one kind of error, with Slurm's own words in it.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterable, Mapping
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
#: For srun to cancel its job when it is asked to end.
_TO_CANCEL_S = 10.0
#: A job that starts in the second in which its last start was killed is refused by slurmd ("job credential
#: revoked") and fails for good (measured, 22.05). Some seconds more, because hosts' clocks differ.
RELEASE_DELAY_S = 5

#: A user's preferences for output; they would change what is printed, or ask questions (scancel).
_PREFERENCES = ("SQUEUE_", "SACCT_", "SINFO_", "SCONTROL_", "SCANCEL_")
#: More of them. Another cluster would be asked than the one that jobs are submitted to.
_OTHER_PREFERENCES = frozenset({"SLURM_TIME_FORMAT", "SLURM_CLUSTERS"})
#: Words of a client that reached no controller, or lost it.
_NO_ANSWER = re.compile(
    "unable to contact slurm controller|unable to establish|could not establish|unable to resolve|"
    "socket timed out|connection (refused|timed out)|connect failure|zero bytes were transmitted|"
    "unexpected message received|temporarily unable|communication connection failure|"
    "error sending/receiving|insane message length|protocol authentication error",
    re.IGNORECASE,
)
#: Of these, the ones after which the request may have been carried out all the same.
_LOST_ANSWER = re.compile(
    "socket timed out|unexpected message received|temporarily unable|zero bytes were transmitted|"
    "error sending/receiving|communication connection failure",
    re.IGNORECASE,
)
_USAGE = re.compile(r"\s*(usage:|try ['\"].*--help)", re.IGNORECASE)


_T = TypeVar("_T")


class AnswerLost(SlurmUnavailable):
    """The answer was lost, so the request may have been carried out: look before asking again."""


def call(
    *command: str,
    timeout_s: float = TIMEOUT_S,
    input: str | None = None,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
) -> str:
    """Standard output of one of Slurm's programs.

    Raises SlurmUnavailable for a missing program or a silent controller, AnswerLost where the request
    may have been carried out nevertheless, and SlurmRefused for any other failure.
    """
    return _run(command, timeout_s, input, cwd, env)[0]


def patiently(ask: Callable[[], _T], patience_s: float) -> _T:
    """Return the result of `ask`, asked again with growing pauses while no controller answers.

    Also while another process submits the same run. For requests that may be made twice. After
    patience_s seconds, raises what the last one raised.
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
    """Whether a controller answers; at once False where Slurm is not installed."""
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

    Raises AnswerLost where the job may exist although its id is unknown; the caller looks for its
    name before it submits again.
    """
    answer = call("sbatch", "--parsable", *options, str(script), cwd=cwd, env=env)
    # A site's submit filter may print more lines; in a federation the cluster's name follows the id.
    found = re.findall(r"^(\d+)(?:;\S*)?$", answer, re.MULTILINE)
    if not found:
        raise AnswerLost(f"sbatch answered without a job id: {answer.strip()!r}")
    return str(found[-1])


def test_only(script: str, cwd: Path | None = None, env: Mapping[str, str] | None = None) -> str:
    """Return the answer of `sbatch --test-only`: when and where a script would start. Submits nothing.

    Raises SlurmRefused where it would be refused. It knows less than `slurm.submission.checks.preflight`:
    a time limit above the partition's passes (measured, 22.05).
    """
    output, errors = _run(("sbatch", "--test-only"), TIMEOUT_S, script, cwd, env)
    return "\n".join(line.removeprefix("sbatch: ").strip() for line in (errors or output).splitlines())


def jobs(*, ids: Iterable[str] = (), names: Iterable[str] = (), user: str | None = None) -> list[Job]:
    """Jobs that the controller still knows, ended ones too; one call for any number.

    At least one filter must be given; several must all match. An array comes as one job for each
    task, an uneven job as one for each component. Unknown and invalid ids are left out.
    """
    asked, names = list(ids), list(names)
    ids = list(filter(parse.is_job_id, asked))
    if asked and not ids:
        return []
    filters = [f"--jobs={','.join(ids)}"] if ids else []
    filters += [f"--name={','.join(names)}"] if names else []
    filters += [f"--user={user}"] if user else []
    if not filters:
        return []
    fixed = ("--noheader", "--array", "--all", "--states=all", f"--Format={parse.JOB_FORMAT}")
    try:
        return parse.parse_jobs(call("squeue", *fixed, *filters))
    except SlurmRefused as refusal:
        # Only for a single unknown id; several are filtered silently.
        if "Invalid job id" in str(refusal):
            return []
        raise


def accounting(ids: Iterable[str]) -> list[Accounted]:
    """Every start of these jobs, oldest first; empty on a cluster without accounting, never an error."""
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
    """Put a running job back into the queue; a job that waits there already is not an error.

    For an array task, job_id is ARRAY_TASK: the bare id of an array requeues all of its tasks.
    """
    try:
        call("scontrol", "requeue", _checked(job_id), timeout_s=timeout_s)
    except SlurmRefused as refusal:
        if "pending execution" not in str(refusal):
            raise


def release_now(job_id: str) -> None:
    """Make a requeued job eligible in a few seconds instead of two minutes; only once it is pending.

    While it is completing, Slurm takes the request and forgets it.
    """
    call("scontrol", "update", f"jobid={_checked(job_id)}", f"starttime=now+{RELEASE_DELAY_S}")


def dependencies(user: str) -> dict[str, str]:
    """Return the dependencies of a user's (name or number) waiting jobs, by id and in sbatch's words."""
    text = call("squeue", "--noheader", "--all", "--states=PENDING", f"--user={user}", "--format=%i|%E")
    return parse.parse_dependencies(text)


def depend_on(job_id: str, dependency: str) -> None:
    """Let a waiting job wait for something else. Raises SlurmRefused where it has started."""
    call("scontrol", "update", f"jobid={_checked(job_id)}", f"dependency={dependency}")


def show_job(job_id: str, timeout_s: float = TIMEOUT_S) -> dict[str, str]:
    """Return the controller's record of a job; of an array or an uneven job, its first record."""
    return parse.parse_job(call("scontrol", "--all", "show", "job", _checked(job_id), timeout_s=timeout_s))


def partitions() -> list[Partition]:
    """All partitions, hidden ones too."""
    return parse.parse_partitions(call("scontrol", "--all", "--oneliner", "show", "partition"))


def hosts() -> list[HostGroup]:
    """The hosts of all partitions, equal ones together."""
    return parse.parse_hosts(call("sinfo", "--all", "--noheader", "--exact", f"--format={parse.HOST_FORMAT}"))


def uses(timeout_s: float = TIMEOUT_S) -> list[HostUse]:
    """Return the current use of the hosts of all partitions."""
    command = ("sinfo", "--all", "--noheader", "--exact", f"--Format={parse.USE_FORMAT}")
    return parse.parse_uses(call(*command, timeout_s=timeout_s))


def all_qos(timeout_s: float = TIMEOUT_S) -> list[Qos]:
    """Every QOS. Raises SchedulerError where there is no accounting, or it does not answer."""
    return account_limits.parse_qos(
        _sacctmgr("qos", f"format={account_limits.QOS_FORMAT}", timeout_s=timeout_s)
    )


def associations(user: str, cluster: str, timeout_s: float = TIMEOUT_S) -> list[Association]:
    """A user's associations with a cluster. Raises SchedulerError as `all_qos`."""
    whose, what = (f"user={user}", f"cluster={cluster}"), f"format={account_limits.ASSOCIATION_FORMAT}"
    return account_limits.parse_associations(_sacctmgr("assoc", *whose, what, timeout_s=timeout_s))


def _sacctmgr(*what: str, timeout_s: float = TIMEOUT_S) -> str:
    return call("sacctmgr", "--noheader", "--parsable2", "show", *what, timeout_s=timeout_s)


def step(
    options: Iterable[str], command: Iterable[str], *, name: str, timeout_s: float, env: Mapping[str, str]
) -> tuple[str, str]:
    """Run a command in a new job of this name, and wait; return its output and srun's complaint.

    The complaint is empty where all went well. No job is left in any case, Ctrl-C included: srun
    cancels it when it is asked to end, and a job whose srun was killed is cancelled by its name.
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
            output = process.communicate(timeout=_TO_CANCEL_S)[0]
        return output, f"no answer in {timeout_s:g} s"
    return output, str(_failure(command[:1], process.returncode, errors)) if process.returncode else ""


def config() -> dict[str, str]:
    """The cluster's settings."""
    return parse.parse_config(call("scontrol", "show", "config"))


def qos_flags(name: str) -> frozenset[str] | None:
    """Flags of a QOS; None where accounting does not answer or does not know it."""
    try:
        return next((each.flags for each in all_qos() if each.name == name.lower()), None)
    except SchedulerError:
        return None


def submit_limits(user: str, account: str | None, qos: str | None) -> list[int]:
    """Return the limits of the association and of the QOS on a user's jobs in the queue.

    account, qos   None: the user's own default
    Empty where there are none, or accounting does not answer.
    """
    try:
        # One database may serve several clusters.
        here = f"cluster={config().get('ClusterName', '')}"
        fields = "format=Account,DefaultQOS,MaxSubmitJobs"
        associations = _sacctmgr("assoc", f"user={user}", here, fields)
        default = _sacctmgr("user", user, "format=DefaultAccount").strip() if account is None else account
        rows = [line.split("|") for line in associations.splitlines() if line.count("|") == 2]
        own = [row for row in rows if row[0] == default.lower()]
        qos = qos or next((row[1] for row in own if row[1]), "normal")
        limits = [row[2] for row in own]
        limits += _sacctmgr("qos", qos, "format=MaxSubmitJobsPerUser").split()
    except SchedulerError:
        return []
    return [int(limit) for limit in limits if limit.isdecimal()]


def _checked(job_id: str) -> str:
    """A job id, as it is. Raises UserError for anything else, which a program would take for an option."""
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
    """Standard output and error of a program that succeeded."""
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
    """Kill what is left of a program that was given up, pipes included."""
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
        # A job that asks for its own requeue is being ended when the answer comes, and so is this process.
        return AnswerLost(f"ended by signal {-code} before it had answered: {shown}\n{words}")
    return SlurmRefused(f"Slurm refused (exit code {code}): {shown}\n{words}")
