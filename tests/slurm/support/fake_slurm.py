"""A pretend Slurm with a job table in a folder, for what a real one does not do on demand.

It hangs, refuses, loses answers and dies at the worst moment. What a real cluster can show is tested
in tests/cluster.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

#: What `sbatch` does. commit: the job is there, and its id is told.
MODES = (
    "commit",
    "refuse",  # with Slurm's words in sbatch.words
    "silent",  # the job is there, but nothing is told
    "late",  # the job is there, but the answer never comes
    "hang",  # no job, and no answer
    "die",  # the job is there, and the submitter is killed before it learns so
    "wait",  # as commit, once somebody has written into the pipe `gate`
)

#: A job as it is in the table, if nothing else is said of it.
_USUAL = {
    "state": "PENDING", "reason": "Priority", "restarts": "0", "requeue": "1", "hosts": "", "user": "me",
    "submitted": "2026-01-01T00:00:00", "started": "N/A", "partition": "main", "work_dir": "", "name": "",
}  # fmt: skip

_PROGRAM = """#!{python} -IS
import json, os, signal, sys, time
from pathlib import Path

STATE = Path({state!r})
FIELDS = (
    "job_id", "job_id", "state", "reason", "restarts", "requeue", "submitted", "started",
    "hosts", "user", "partition", "dependency", "work_dir", "name",
)
name, arguments = Path(sys.argv[0]).name, sys.argv[1:]
with open(STATE / (name + ".calls"), "a") as stream:
    stream.write(json.dumps(arguments) + "\\n")


def table():
    return json.loads((STATE / "jobs.json").read_text())


def commit():
    lines = Path(arguments[-1]).read_text().splitlines()
    given = {{}}
    for line in lines:
        if line.startswith("#SBATCH --"):
            key, _, value = line.removeprefix("#SBATCH --").partition("=")
            given.setdefault(key, value.strip('"'))
    jobs = table()
    job = {usual!r} | {{
        "job_id": str(len(jobs) + 101), "work_dir": given["chdir"], "name": given["job-name"],
        "dependency": given.get("dependency", ""),
    }}
    first, _, last = given.get("array", "").partition("%")[0].partition("-")
    new = [job]
    if first:
        ids = [f"{{job['job_id']}}_{{task}}" for task in range(int(first), int(last) + 1)]
        new = [dict(job, job_id=each) for each in ids]
    (STATE / "jobs.json").write_text(json.dumps([*jobs, *new]))
    (STATE / "environment.json").write_text(json.dumps(dict(os.environ)))
    return job["job_id"]


def sbatch():
    mode = (STATE / "sbatch.mode").read_text()
    after = STATE / "sbatch.after"
    calls = (STATE / "sbatch.calls").read_text().count("\\n")
    if mode == "refuse" and calls > (int(after.read_text()) if after.exists() else 0):
        sys.exit((STATE / "sbatch.words").read_text())
    if mode == "hang":
        time.sleep(600)
    if mode == "wait":
        (STATE / "gate").read_text()
    job_id = commit()
    if mode == "die":
        os.kill(os.getppid(), signal.SIGKILL)
    if mode == "late":
        time.sleep(600)
    if mode != "silent":
        print(job_id)


def squeue():
    if "--steps" in arguments:
        (jobs,) = [each.removeprefix("--jobs=") for each in arguments if each.startswith("--jobs=")]
        starts = tuple(job + end for job in jobs.split(",") for end in "._")
        steps = (STATE / "steps").read_text().split() if (STATE / "steps").exists() else []
        print(*[each for each in steps if each.startswith(starts)], sep="\\n")
        return
    if "--format=%i|%E" in arguments:
        for job in table():
            if job["state"] == "PENDING":
                parts = filter(None, job.get("dependency", "").split(","))
                words = ",".join(f"{{each}}(unfulfilled)" for each in parts)
                print(job["job_id"] + "|" + (words or "(null)"))
        return
    wanted = {{}}
    for argument in arguments:
        key, _, value = argument.partition("=")
        wanted[key] = value.split(",")
    for job in table():
        ids = {{job["job_id"], job["job_id"].split("_")[0].split("+")[0]}}
        if ids & set(wanted.get("--jobs", ids)) and job["name"] in wanted.get("--name", [job["name"]]):
            sys.stdout.write("\\x1f".join(job.get(field, "") for field in FIELDS) + "\\x1e\\n")


def scontrol():
    if arguments == ["ping"]:
        print("Slurmctld(primary) at head is UP")
    if arguments[0] == "update" and arguments[2].startswith("dependency="):
        job_id, words = arguments[1].removeprefix("jobid="), arguments[2].removeprefix("dependency=")
        changed = [dict(job, dependency=words) if job["job_id"] == job_id else job for job in table()]
        (STATE / "jobs.json").write_text(json.dumps(changed))
    answer = STATE / ("scontrol " + " ".join(arguments))
    refusal = answer.with_name(answer.name + ".words")
    if refusal.exists():
        sys.exit(refusal.read_text())
    if answer.exists():
        print(answer.read_text())


def sacctmgr():
    answer = STATE / ("sacctmgr " + arguments[arguments.index("show") + 1])
    if answer.exists():
        print(answer.read_text())


once = STATE / (name + ".once")
if once.exists():
    words = once.read_text()
    once.unlink()
    sys.exit(words)
if (STATE / (name + ".words")).exists() and name != "sbatch":
    sys.exit((STATE / (name + ".words")).read_text())
{{"sbatch": sbatch, "sacctmgr": sacctmgr, "squeue": squeue, "scontrol": scontrol}}.get(name, lambda: None)()
"""


class FakeSlurm:
    """The programs in `folder`, which stands on PATH, and their state."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._state = folder / "state"
        self._state.mkdir(parents=True)
        self._write("jobs.json", "[]")
        self.submits("commit")
        program = _PROGRAM.format(python=sys.executable, state=str(self._state), usual=_USUAL)
        for name in ("sbatch", "squeue", "scontrol", "sinfo", "sacct", "sacctmgr", "scancel"):
            (folder / name).write_text(program)
            (folder / name).chmod(0o755)

    def submits(self, mode: str, words: str = "") -> None:
        """Choose what sbatch does from now on."""
        assert mode in MODES
        self._write("sbatch.mode", mode)
        self._write("sbatch.words", words)

    def refuses_after(self, accepted: int, words: str) -> None:
        """sbatch takes so many calls of all, and refuses those after them."""
        self.submits("refuse", words)
        self._write("sbatch.after", str(accepted))

    def accounts(self, *, account: str, qos: str, max_submit: str = "", max_submit_of_qos: str = "") -> None:
        """What `sacctmgr show` says of the user's account and of the QOS."""
        self._write("sacctmgr user", account)
        self._write("sacctmgr assoc", f"other||{qos}|1\n{account}||{qos}|{max_submit}")
        self._write("sacctmgr qos", max_submit_of_qos)

    def has_steps(self, *steps: str) -> None:
        """What squeue lists of the steps of each job, such as 101.batch and 101.0."""
        self._write("steps", "".join(f"{step}\n" for step in steps))

    def goes_away(self) -> None:
        """From now on no program reaches the controller."""
        words = "Unable to contact slurm controller (connect failure)"
        self.submits("refuse", f"sbatch: error: Batch job submission failed: {words}")
        for name in ("squeue", "scontrol", "sinfo", "sacct", "scancel"):
            self._write(f"{name}.words", f"{name}: error: {words}")

    def comes_back(self) -> None:
        """The controller answers again."""
        self.submits("commit")
        for path in self._state.glob("*.words"):
            if path.name != "sbatch.words":
                path.unlink()

    def answers(self, command: str, text: str) -> None:
        """What `scontrol COMMAND` prints."""
        self._write(f"scontrol {command}", text)

    def refuses_to(self, command: str, words: str) -> None:
        """`scontrol COMMAND` fails with these words."""
        self._write(f"scontrol {command}.words", words)

    def fails_once(self, program: str, words: str) -> None:
        """The next call of a program fails with these words, those after it do not."""
        self._write(f"{program}.once", words)

    def refuses(self, program: str, words: str) -> None:
        """From now on a program fails with these words."""
        self._write(f"{program}.words", words)

    @property
    def jobs(self) -> list[dict[str, str]]:
        """The job table."""
        jobs: list[dict[str, str]] = json.loads((self._state / "jobs.json").read_text())
        return jobs

    def add(self, job_id: str, **facts: str) -> None:
        """Put a job into the table."""
        self._write("jobs.json", json.dumps([*self.jobs, {"job_id": job_id} | _USUAL | facts]))

    def change(self, job_id: str, **facts: str) -> None:
        """Change facts of a job."""
        changed = [job | facts if job["job_id"] == job_id else job for job in self.jobs]
        self._write("jobs.json", json.dumps(changed))

    def forget(self, *job_ids: str) -> None:
        """As a controller does some minutes after the end of a job, where no accounting is configured."""
        left = [job for job in self.jobs if job["job_id"] not in job_ids]
        self._write("jobs.json", json.dumps(left))

    def calls(self, name: str) -> list[list[str]]:
        """The arguments of each call of a program."""
        path = self._state / f"{name}.calls"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    @property
    def environment(self) -> dict[str, str]:
        """The environment of the last sbatch that made a job."""
        environment: dict[str, str] = json.loads((self._state / "environment.json").read_text())
        return environment

    @property
    def gate(self) -> Path:
        """A pipe that sbatch waits at in the mode `wait`."""
        path = self._state / "gate"
        if not path.exists():
            os.mkfifo(path)
        return path

    def _write(self, name: str, text: Any) -> None:
        (self._state / name).write_text(text)
