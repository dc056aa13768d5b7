"""The plan is a value, and its text is the batch script.

Whole scripts stand in golden/; after a change that is meant, `STK_WRITE_GOLDEN=1 pytest
tests/slurm/test_plan.py` writes them anew, and the difference is what a reviewer reads.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from slurm.plan import JobPlan
from tests.slurm.house import House
from toolkit.config import identity, load_resolved
from toolkit.config.checking import check
from toolkit.config.schema import Experiment, Group, Resources
from toolkit.errors import UserError
from toolkit.rundir import RunDir

GOLDEN = Path(__file__).parent / "golden"
RUN = RunDir(Path("/scratch/me/experiments/tiny-0123abcd"))
HOSTILE = 'it\'s "50 %" of $HOME, `date` \\ #1 <é漢🙂> '

PLANS: dict[str, tuple[Resources, RunDir]] = {
    "single_node": (Resources(), RUN),
    "two_nodes_with_gres": (Resources(nodes=2, tasks_per_node=2, gres="gpu:2"), RUN),
    "elastic": (
        Resources(nodes="1-4", tasks_per_node=2, time="10"),
        RUN,
    ),
    "every_option": (
        Resources(
            nodes=4,
            tasks_per_node=2,
            gres="gpu:a100:2,tmpdisk:10",
            gpus_per_node="2",
            gpus_per_task="1",
            cpus_per_task=6,
            mem="64G",
            mem_per_cpu="4G",
            mem_per_gpu="32G",
            time="1-12:00:00",
            partition="long,short",
            account="lab",
            qos="high",
            constraint="a100|h100",
            nodelist="node[1-4]",
            exclude="node7,node9",
            reservation="course",
            dependency="afterok:12:13",
            mail_user="me@example.org",
            mail_type="END,FAIL",
            comment="first try",
            licenses="matlab:1",
            exclusive=True,
            max_parallel=4,
            signal_s=300,
            setup=("module purge", "module load cuda/12.4"),
            environment={"OMP_NUM_THREADS": "6", "NCCL_DEBUG": "INFO"},
            sbatch={"kill-on-invalid-dep": "yes", "spread_job": True, "nice": 100, "output": "logs/%j.out"},
        ),
        RUN,
    ),
    "uneven_groups": (
        Resources(
            groups=(
                Group(nodes=1, gpus=3),
                Group(nodes=2, gpus=1, partition="short", constraint="v100"),
                Group(nodes=1, gpus=0),
            ),
            partition="long",
            cpus_per_task=2,
            comment="one heterogeneous job",
        ),
        RUN,
    ),
    "hostile_values": (
        Resources(
            comment=HOSTILE,
            account="a b",
            environment={"REMARK": HOSTILE + "\nsecond line\r\n", "EMPTY": "", "lower": "a,b"},
            setup=("source '/opt/my env/activate'",),
            sbatch={"cpus-per-task": "2; touch /tmp/gotcha"},
        ),
        RunDir(Path("/scratch/it's \"my\" $HOME, `x` #1/tiny-0123abcd")),
    ),
}  # fmt: skip


@pytest.fixture
def experiment() -> Experiment:
    return check({
        "name": "tiny",
        "task": {"kind": "text_classification"},
        "model": {"kind": "docnn"},
        "data": {"path": "/data/reviews.tsv"},
    })  # fmt: skip


def plan(experiment: Experiment, resources: Resources, run: RunDir = RUN, number: int = 0) -> JobPlan:
    return JobPlan(
        experiment=experiment,
        resources=resources,
        run=run,
        number=number,
        python="/opt/my venv/bin/python",
    )


def directives(script: JobPlan) -> dict[str, str]:
    """The options of the job's first component."""
    lines = str(script).partition("#SBATCH hetjob")[0].splitlines()
    found = [line.removeprefix("#SBATCH --") for line in lines if line.startswith("#SBATCH --")]
    names = [line.partition("=")[0] for line in found]
    assert len(names) == len(set(names)), "an option stands twice"
    return {line.partition("=")[0]: line.partition("=")[2] for line in found}


def srun(script: JobPlan) -> str:
    (line,) = (line for line in str(script).splitlines() if line.startswith("srun "))
    return line


@pytest.mark.parametrize("name", PLANS)
def test_the_whole_script_is_the_golden_one(experiment: Experiment, name: str) -> None:
    script = str(plan(experiment, *PLANS[name]))
    golden = GOLDEN / f"{name}.sh"
    if os.environ.get("STK_WRITE_GOLDEN"):
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(script, encoding="utf-8", newline="")
    assert script == golden.read_bytes().decode()


def test_there_is_no_golden_script_without_a_plan() -> None:
    assert {path.stem for path in GOLDEN.iterdir()} == set(PLANS)


@pytest.mark.parametrize("name", PLANS)
def test_bash_accepts_every_script(name: str) -> None:
    checked = subprocess.run(
        ["bash", "-n", GOLDEN / f"{name}.sh"], capture_output=True, text=True, check=False
    )
    assert (checked.returncode, checked.stderr) == (0, "")


@pytest.mark.parametrize("name", PLANS)
def test_the_text_of_a_plan_depends_on_nothing_else(
    experiment: Experiment, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = str(plan(experiment, *PLANS[name]))
    monkeypatch.chdir(tmp_path)
    for variable in ("SLURM_JOB_ID", "SBATCH_PARTITION", "STK_EXPERIMENT_DIR", "PYTHONPATH"):
        monkeypatch.setenv(variable, "99")
    assert str(plan(experiment, *PLANS[name])) == first
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", PLANS)
def test_every_script_requeues_appends_and_ends_all_ranks_together(experiment: Experiment, name: str) -> None:
    script = plan(experiment, *PLANS[name])
    given = directives(script)
    assert given["requeue"] == ""
    assert given["open-mode"] == "append"
    assert {"--kill-on-bad-exit=1", "--open-mode=append"} <= set(shlex.split(srun(script)))
    assert "--cpus-per-task=" in srun(script)


def test_each_rank_has_its_own_log_in_each_start(experiment: Experiment) -> None:
    """%j, %s, %t: job, step and task; the restart count is the shell's to fill in."""
    assert '--output="logs/%j.%s.${SLURM_RESTART_COUNT:-0}.rank_%5t.log"' in srun(
        plan(experiment, Resources())
    )


def test_srun_gets_the_cpus_that_the_job_asked_for(experiment: Experiment) -> None:
    assert "--cpus-per-task=6 " in srun(plan(experiment, Resources(cpus_per_task=6)))
    assert "--cpus-per-task=${SLURM_CPUS_PER_TASK:-1} " in srun(plan(experiment, Resources()))
    assert "--cpus-per-task=3 " in srun(plan(experiment, Resources(sbatch={"cpus_per_task": 3})))


def test_ranks_are_warned_before_the_time_limit(experiment: Experiment) -> None:
    assert directives(plan(experiment, Resources(signal_s=300)))["signal"] == "USR2@300"


@pytest.mark.parametrize(
    "time, signal_s, lead_s",
    [
        (None, 120, 120), ("4:00:00", 120, 120), ("4:00:00", 7200, 7200), ("10", 300, 300), ("5", 120, 120),
        ("3", 120, 60), ("2", 120, 20), ("1", 120, 10), ("1", 5, 5), ("0", 120, 120),
    ],
)  # fmt: skip
def test_a_short_job_is_warned_when_its_ranks_can_take_it(
    experiment: Experiment, time: str | None, signal_s: int, lead_s: int
) -> None:
    """Slurm may be a minute early, and a rank that is only starting dies of the signal."""
    resources = Resources(time=time, signal_s=signal_s)
    assert directives(plan(experiment, resources))["signal"] == f"USR2@{lead_s}"


def test_a_job_that_follows_another_waits_for_nothing_else(experiment: Experiment) -> None:
    """What the first one depended on has come true."""
    script = replace(plan(experiment, Resources(dependency="afterok:12")), after="77_1")
    assert directives(script)["dependency"] == "afterany:77_1"


def test_of_an_elastic_job_the_largest_world_is_planned_and_the_range_told(house: House) -> None:
    overrides = ["resources.nodes=2-4", "resources.tasks_per_node=2"]
    facts = json.loads(house.stk("plan", house.config, *overrides, "--json").out)
    assert facts["world_size"] == 8
    assert facts["config"]["resources"]["nodes"] == "2-4"
    assert "#SBATCH --nodes=2-4" in facts["script"]
    assert "4 to 8 processes" in house.stk("plan", house.config, *overrides).out
    fixed = json.loads(house.stk("plan", house.config, "resources.nodes=2", "--json").out)
    assert fixed["config"]["resources"]["nodes"] == 2


def test_a_users_option_wins_over_the_default(experiment: Experiment) -> None:
    given = directives(plan(experiment, Resources(sbatch={"output": "mine-%j.log"})))
    assert given["output"] == "mine-%j.log"


@pytest.mark.parametrize(
    "option, value",
    [
        ("job-name", "mine"),
        ("chdir", "/tmp"),
        ("open-mode", "truncate"),
        ("open_mode", "truncate"),
        ("requeue", False),
        ("no-requeue", True),
        ("signal", "USR1"),
        ("array", "1-3"),
        ("wrap", "true"),
        ("nodes", 7),
        ("ntasks", 7),
        ("ntasks-per-node", 7),
    ],
)
def test_options_that_the_run_rests_on_are_refused_with_the_reason(
    experiment: Experiment, option: str, value: object
) -> None:
    with pytest.raises(UserError, match=rf"resources\.sbatch\.{option} cannot be set here: \w.{{10,}}"):
        str(plan(experiment, Resources(sbatch={option: value})))


@pytest.mark.parametrize("character, reason", [
    ("%", "pattern"), ("\\", "drops"), ("\n", "line by line"), (":", "PYTHONPATH"), ("\r", "line break"),
])  # fmt: skip
def test_a_folder_that_would_not_reach_the_job_is_refused_with_the_reason(
    experiment: Experiment, character: str, reason: str
) -> None:
    run = RunDir(Path(f"/scratch/a{character}b/tiny-0123abcd"))
    with pytest.raises(UserError, match=reason) as refusal:
        str(plan(experiment, Resources(), run))
    assert repr(str(run.path)) in str(refusal.value)


def test_each_submission_of_a_run_has_a_name_of_its_own(experiment: Experiment) -> None:
    names = [directives(plan(experiment, Resources(), number=number))["job-name"] for number in range(3)]
    assert names == ["tiny-0123abcd.0", "tiny-0123abcd.1", "tiny-0123abcd.2"]


def test_variables_reach_the_ranks_byte_for_byte(experiment: Experiment, tmp_path: Path) -> None:
    """The script itself runs here, with a pretend srun that shows its environment."""
    resources, _ = PLANS["hostile_values"]
    resources = replace(resources, setup=())
    run = RunDir(tmp_path)
    shown = run_script(plan(experiment, resources, run), tmp_path, "env -0")
    pairs = (pair.partition("=") for pair in shown.split("\0"))
    environment = {name: value for name, _, value in pairs}
    assert {name: environment[name] for name in resources.environment} == resources.environment


def test_set_up_lines_run_first_and_the_runs_own_code_is_found_before_any_other(
    experiment: Experiment, tmp_path: Path
) -> None:
    resources = Resources(setup=("export PYTHONPATH=/site", "greeting=hello"), environment={"A": "1"})
    shown = run_script(plan(experiment, resources, RunDir(tmp_path)), tmp_path, 'echo "$PYTHONPATH"')
    assert shown == f"{tmp_path}/code:/site\n"


def test_the_job_runs_although_nobody_named_its_pickle(experiment: Experiment, tmp_path: Path) -> None:
    """As when the submitter died right after sbatch."""
    folder = tmp_path / "submitit"
    folder.mkdir()
    (folder / "job.pkl").write_bytes(b"the job")
    script = plan(experiment, Resources(), RunDir(tmp_path))
    for _ in range(2):  # a second start finds it there
        shown = run_script(script, tmp_path, 'printf "%s\\n" "$@"')
        assert (folder / "77_submitted.pkl").read_bytes() == b"the job"
    assert shown.splitlines()[-5:] == [
        "/opt/my venv/bin/python", "-u", "-m", "submitit.core._submit", "submitit",
    ]  # fmt: skip


def test_a_job_without_any_pickle_fails_at_once(experiment: Experiment, tmp_path: Path) -> None:
    with pytest.raises(subprocess.CalledProcessError) as failure:
        run_script(plan(experiment, Resources(), RunDir(tmp_path)), tmp_path, "echo srun", pickle=False)
    assert failure.value.returncode == 1
    assert failure.value.stdout == b""


# -- the end of the step ---------------------------------------------------------------------------

#: Says that it was called, and how, to the file that the script's log would be.
_AFTER_STEP = '#!/bin/bash\necho "after_step $*"\n'


def ending(
    experiment: Experiment, folder: Path, srun: str, *, signals: tuple[signal.Signals, ...] = ()
) -> tuple[int, str]:
    """Exit status and output of a plan's script, of which the shell gets signals once the step runs."""
    python = folder / "python"
    python.write_text(_AFTER_STEP)
    python.chmod(0o755)
    script = replace(plan(experiment, Resources(), RunDir(folder)), python=str(python))
    process = start_script(script, folder, f"echo started; {srun}")
    assert process.stdout is not None
    assert process.stdout.readline() == b"started\n"
    for number in signals:
        process.send_signal(number)
    output, _ = process.communicate(timeout=30)
    return process.returncode, output.decode()


def test_a_step_that_finished_is_the_end(experiment: Experiment, tmp_path: Path) -> None:
    assert ending(experiment, tmp_path, "exit 0") == (0, "")


@pytest.mark.parametrize("code", [1, 2, 75, 77, 137, 143])
def test_after_any_other_end_somebody_decides_and_the_status_stays(
    experiment: Experiment, tmp_path: Path, code: int
) -> None:
    expected = f"after_step -P -m slurm.after_step {tmp_path} {code}\n"
    assert ending(experiment, tmp_path, f"exit {code}") == (code, expected)


@pytest.mark.parametrize("code", [0, 75])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2, signal.SIGHUP])
def test_no_signal_ends_the_script_before_its_step(
    experiment: Experiment, tmp_path: Path, number: signal.Signals, code: int
) -> None:
    """The step goes on for a while after the last of them, and its status is the script's."""
    srun = f"until [ -e {tmp_path}/saved ]; do sleep 0.02; done; exit {code}"
    python = tmp_path / "python"
    python.write_text(_AFTER_STEP)
    python.chmod(0o755)
    script = replace(plan(experiment, Resources(), RunDir(tmp_path)), python=str(python))
    process = start_script(script, tmp_path, f"echo started; {srun}")
    assert process.stdout is not None
    assert process.stdout.readline() == b"started\n"
    for _ in range(5):
        process.send_signal(number)
    # Only once the shell has heeded them all may the step end, or nothing would be shown.
    wait_until_heeded(process.pid, number)
    assert process.poll() is None
    (tmp_path / "saved").touch()
    output, _ = process.communicate(timeout=30)
    assert process.returncode == code
    assert output.decode().startswith("after_step" if code else "")


def wait_until_heeded(pid: int, number: signal.Signals) -> None:
    """Return when a signal waits for a process no longer."""
    bit = 1 << (number - 1)

    def is_pending() -> bool:
        lines = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
        return any(int(lines[name], 16) & bit for name in ("SigPnd", "ShdPnd"))

    while is_pending():
        os.sched_yield()


def start_script(script: JobPlan, folder: Path, srun: str) -> subprocess.Popen[bytes]:
    """Start a plan's script with bash as job 77, with a pretend srun."""
    prepare_script(script, folder, srun)
    return subprocess.Popen(
        ["bash", "script.sh"],
        cwd=folder,
        env={"PATH": f"{folder / 'bin'}:{os.environ['PATH']}", "SLURM_JOB_ID": "77"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )


def run_script(script: JobPlan, folder: Path, srun: str, *, pickle: bool = True) -> str:
    """Run a plan's script with bash as job 77, with a pretend srun; return what it printed."""
    prepare_script(script, folder, srun, pickle=pickle)
    done = subprocess.run(
        ["bash", "script.sh"],
        cwd=folder,
        env={"PATH": f"{folder / 'bin'}:{os.environ['PATH']}", "SLURM_JOB_ID": "77"},
        capture_output=True,
        check=True,
    )
    return done.stdout.decode()


def prepare_script(script: JobPlan, folder: Path, srun: str, *, pickle: bool = True) -> None:
    bin = folder / "bin"
    bin.mkdir(exist_ok=True)
    (bin / "srun").write_text(f"#!/bin/bash\n{srun}\n")
    (bin / "srun").chmod(0o755)
    (folder / "submitit").mkdir(exist_ok=True)
    if pickle and not (folder / "submitit" / "job.pkl").exists():
        (folder / "submitit" / "job.pkl").touch()
    (folder / "script.sh").write_text(str(script), encoding="utf-8", newline="")


# -- the command ---------------------------------------------------------------------------------


def test_stk_plan_touches_nothing_and_asks_nobody(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """No data file, no Slurm, no experiment folder: a plan needs none of them."""
    monkeypatch.setenv("PATH", "")
    (house.root / "reviews.tsv").unlink()
    before = house.listing
    assert house.stk("plan", house.config).code == 0
    assert house.stk("plan", house.config, "--json", "resources.nodes=2").code == 0
    assert house.listing == before


def test_stk_plan_in_json_is_one_document_with_the_agreed_keys(house: House) -> None:
    overrides = ["resources.nodes=2", "resources.tasks_per_node=2", "resources.gres=gpu:2"]
    answer = house.stk("plan", house.config, *overrides, "--json")
    facts: dict[str, Any] = json.loads(answer.out)
    experiment = house.experiment(*overrides)
    assert set(facts) == {"run_id", "identity", "config", "script", "world_size"}
    assert facts["run_id"] == f"tiny-{identity(experiment)}"
    assert facts["identity"] == identity(experiment)
    assert facts["world_size"] == 4
    assert facts["config"]["resources"]["gres"] == "gpu:2"
    assert facts["script"] == str(
        JobPlan(experiment=experiment, resources=experiment.resources, run=house.run())
    )
    assert answer.err == ""


def test_stk_plan_for_people_shows_the_resolved_experiment_and_the_script(house: House) -> None:
    shown = house.stk("plan", house.config, "optimizer.lr=0.5").out
    head, _, rest = shown.partition("\n\n")
    resolved, _, script = rest.partition("# batch script\n\n")
    assert head == f"# {house.run('optimizer.lr=0.5').path}"
    assert yaml.safe_load(resolved)["optimizer"]["lr"] == 0.5
    facts = json.loads(house.stk("plan", house.config, "optimizer.lr=0.5", "--json").out)
    assert script == facts["script"] + "\n"
    stored = house.write("stored.yaml", resolved)
    assert identity(load_resolved(stored)) == facts["identity"]


@pytest.mark.parametrize("override", [
    "resources.nodes=4", "resources.tasks_per_node=8", "resources.gres=gpu:8", "resources.time=60",
    "resources.environment.A=b", "resources.setup=[module load cuda]", "resources.sbatch.nice=10",
    "checkpoint.every_steps=7",
])  # fmt: skip
def test_resources_never_change_the_run(house: House, override: str) -> None:
    plain = json.loads(house.stk("plan", house.config, "--json").out)
    other = json.loads(house.stk("plan", house.config, override, "--json").out)
    assert other["run_id"] == plain["run_id"]
    assert other["config"] != plain["config"]


def test_what_is_computed_changes_the_run(house: House) -> None:
    plain = json.loads(house.stk("plan", house.config, "--json").out)
    other = json.loads(house.stk("plan", house.config, "optimizer.lr=0.5", "--json").out)
    assert other["run_id"] != plain["run_id"]
