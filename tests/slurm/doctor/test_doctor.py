"""stk doctor: what it asks, what it reports, and that it stops at nothing that is broken."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from slurm.client import programs
from slurm.doctor import run_checks
from tests.slurm.doctor.clusters import RECORDED
from tests.slurm.status.folders import new_run
from tests.slurm.support.stubs import Stubs
from tests.slurm.support.user import Answer, User
from toolkit.files import append_json_line
from toolkit.monitoring.diagnostics import folder
from toolkit.monitoring.diagnostics.child_process import ask_here

#: So that no test waits for the real one to be imported.
TORCH = """
__version__ = "2.9"
class version: cuda = None
class cuda: is_available = staticmethod(lambda: False)
class distributed: is_available = is_nccl_available = is_gloo_available = staticmethod(lambda: True)
get_num_threads = lambda: 4
"""


@pytest.fixture(scope="module")
def told_before() -> dict[str, Any]:
    """What this machine has answered already, by question: its disk is tried out once."""
    return {}


@pytest.fixture
def here(
    user: User, stubs: Stubs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told_before: dict[str, Any]
) -> User:
    """A user without Slurm, whose machine answers soon."""

    def ask(questions: list[str], timeout_s: float) -> dict[str, Any]:
        kind = " ".join(question.partition("=")[0] for question in questions)
        if kind not in told_before:
            told_before[kind] = ask_here(questions, timeout_s)
        return dict(told_before[kind])

    monkeypatch.setattr(run_checks, "ask_here", ask)
    stand_ins = tmp_path / "stand-ins"
    stand_ins.mkdir()
    (stand_ins / "torch.py").write_text(TORCH)
    monkeypatch.setenv("PYTHONPATH", str(stand_ins))
    return user


@pytest.fixture
def slurm(stubs: Stubs) -> Stubs:
    """The recorded cluster."""
    stubs.add(
        "scontrol",
        f"""case "$*" in
        ping) echo "Slurmctld(primary) at head is UP" ;;
        "show config") exec /bin/cat '{RECORDED}/../config.txt' '{RECORDED}/config.txt' ;;
        *partition) exec /bin/cat '{RECORDED}/partitions.txt' ;;
        esac""",
    )
    stubs.add(
        "sinfo",
        f"""case "$*" in
        *--Format*) exec /bin/cat '{RECORDED}/sinfo.txt' ;;
        *) printf 'main\\0378\\03764000\\037gpu:4\\037(null)\\037demo-[1-4]\\n' ;;
        esac""",
    )
    stubs.add(
        "sacctmgr",
        f"""case "$*" in
        *qos*) exec /bin/cat '{RECORDED}/qos.txt' ;;
        *) exec /bin/cat '{RECORDED}/associations.txt' ;;
        esac""",
    )
    return stubs


def told(answer: Answer) -> dict[str, Any]:
    """What --json told; the exit code says whether there is a problem."""
    document: dict[str, Any] = json.loads(answer.out)
    is_problem = any(finding["level"] == "problem" for finding in document["findings"])
    assert answer.code == (4 if is_problem else 0), answer.err
    return document


def found(document: dict[str, Any], words: str) -> dict[str, str]:
    """The one finding that has these words."""
    (finding,) = [each for each in document["findings"] if words in each["found"]]
    return dict(finding)


def test_doctor_without_slurm_checks_the_machine_and_its_files(here: User) -> None:
    document = told(here.stk("doctor", "--json"))
    assert found(document, "Slurm is not installed here")["level"] == "note"
    assert (document["cluster"], document["partitions"]) == ("", [])
    sections = {each["section"].partition(",")[0] for each in document["findings"]}
    assert sections == {"Slurm", "This machine", "Files"}
    assert found(document, "torch 2.9")["level"] == "ok"
    assert found(document, "do what a run relies on")["level"] == "ok"
    assert not here.experiments.exists()


def test_cluster_is_asked_once_for_each_fact(here: User, slurm: Stubs) -> None:
    document = told(here.stk("doctor", "--json"))
    assert document["cluster"] == "demo"
    names = [row["name"] for row in document["partitions"]]
    assert names == ["main", "preemptible", "preemptible0", "urgent"]
    assert document["partitions"][0]["gpus_free"] == {"gpu": 13}
    assert found(document, "GraceTime 10 + KillWait 5")["section"] == "Time limits and preemption"
    assert len(slurm.calls("scontrol")) == 3
    assert (len(slurm.calls("sinfo")), len(slurm.calls("sacctmgr"))) == (1, 2)


def test_one_partition_may_be_shown_alone(here: User, slurm: Stubs) -> None:
    document = told(here.stk("doctor", "--partition", "preemptible", "--json"))
    assert [row["name"] for row in document["partitions"]] == ["preemptible"]


def test_text_output_has_headings_a_table_and_problems_at_the_end(here: User, slurm: Stubs) -> None:
    answer = here.stk("doctor", here.config, "resources.time=9:00:00")
    assert answer.code == 4
    for heading in ("Slurm", "Partitions", "Requeue", "Limits", "Hosts", "Files", "Experiment tiny-"):
        assert re.search(f"^{heading}", answer.out, re.MULTILINE), heading
    assert re.search(r"main\* +01:00:00 +2 +2 +4 +13 of 16", answer.out)
    # A machine with GPUs has more to be done below it.
    (last,) = (line for line in answer.out.splitlines() if line.startswith("problem: Experiment tiny-"))
    assert "time 09:00:00 is above MaxTime 01:00:00 of partition main" in last


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_a_terminal_of_any_width_gets_lines_that_fit(
    here: User, slurm: Stubs, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    answer = here.stk("doctor")
    assert max(map(len, answer.out.splitlines())) <= columns
    assert "\x1b" not in answer.out


def test_an_experiment_is_compared_with_what_its_run_measured(here: User, slurm: Stubs) -> None:
    run = new_run(here.experiments, here.run().run_id)
    append_json_line(run.attempts, {"attempt": 1, "step_s": 0.5, "save_s": 20.0})
    append_json_line(run.events, {"event": "save", "seconds": 20.0, "paused_s": 0.0, "bytes": 1 << 20})
    document = told(here.stk("doctor", here.config, "resources.partition=preemptible", "--json"))
    short = found(document, "a step and a save take 20.5 s, but a preemption in partition preemptible")
    assert (short["level"], short["key"]) == ("change", "checkpoint.every_steps")
    assert found(document, "its checkpoints of 1.0 MB take up to 4.0 MB")["level"] == "ok"
    assert found(document, "it requests no time and gets 01:00:00")["key"] == "resources.time"
    assert found(document, "20.0 s at most (tiny-")["level"] == "ok"


def test_experiment_that_fits_the_cluster_is_reported_as_ok(here: User, slurm: Stubs) -> None:
    document = told(here.stk("doctor", here.config, "--json"))
    assert found(document, "there are hosts that fit it")["level"] == "ok"


def test_accounting_that_does_not_answer_leaves_its_part_unknown(here: User, slurm: Stubs) -> None:
    slurm.fails("sacctmgr", "sacctmgr: error: slurm_persist_conn_open: Connection refused\n")
    document = told(here.stk("doctor", "--json"))
    assert "Connection refused" in found(document, "QOS: unknown")["found"]
    assert found(document, "your accounts: unknown")["level"] == "note"


def test_malformed_output_of_slurm_does_not_stop_doctor(here: User, slurm: Stubs) -> None:
    slurm.answers("sinfo", "\x1b[2J[red]what\x1f\x1f\x1e\n")
    slurm.answers("sacctmgr", "|||\n" * 3)
    document = told(here.stk("doctor", "--json"))
    assert document["partitions"][0]["gpus"] == {}


def test_control_characters_and_markup_of_others_reach_no_terminal(here: User, slurm: Stubs) -> None:
    slurm.fails("sacctmgr", "sacctmgr: error: [bold]\x1b[2J away\n")
    answer = here.stk("doctor")
    assert "\x1b" not in answer.out
    assert "[bold]␛[2J away" in answer.out


def test_a_file_system_that_hangs_is_a_finding(here: User, monkeypatch: pytest.MonkeyPatch) -> None:
    def ask(questions: list[str], timeout_s: float) -> dict[str, Any]:
        return {"why": f"no answer in {timeout_s:g} s"}

    monkeypatch.setattr(run_checks, "ask_here", ask)
    document = told(here.stk("doctor", "--json"))
    assert found(document, "runs: the file system does not answer: no answer in 60 s")["level"] == "problem"
    assert found(document, "not everything could be asked")["level"] == "problem"
    assert "no answer in 180 s" in found(document, "torch cannot be imported")["found"]


def test_missing_controller_is_an_error_with_cluster_slurm(here: User, stubs: Stubs) -> None:
    assert here.stk("doctor", "--cluster", "slurm").code == 3
    stubs.fails("scontrol", "Unable to contact slurm controller\n")
    assert here.stk("doctor", "--cluster", "slurm").code == 3
    assert found(told(here.stk("doctor", "--json")), "no controller answers")["level"] == "problem"
    assert found(told(here.stk("doctor", "--cluster", "local", "--json")), "not asked")["level"] == "note"


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["--partition", "nowhere"], "there are main, preemptible, preemptible0, urgent"),
        (["--on-node", "--cluster", "local"], "--on-node checks a host of a cluster"),
        (["nothing.yaml"], "nothing.yaml"),
    ],
)
def test_wrong_input_is_refused(here: User, slurm: Stubs, arguments: list[str], words: str) -> None:
    assert words in here.refused("doctor", *arguments)


# -- on a host


@pytest.fixture
def host(slurm: Stubs) -> Stubs:
    """srun that starts its command here, after a site's greeting."""
    slurm.add(
        "srun",
        """echo welcome
        while [ "${1#--}" != "$1" ]; do shift; done
        exec "$@\"""",
    )
    slurm.add("scancel", "")
    return slurm


def test_a_host_is_asked_in_a_job_of_one_task(here: User, host: Stubs) -> None:
    document = told(here.stk("doctor", "--on-node", "--partition", "preemptible", "--json"))
    (call,) = host.calls("srun")
    options = [word for word in call if word.startswith("--")]
    assert {"--nodes=1", "--ntasks=1", "--partition=preemptible", "--gres=gpu:1"} <= set(options)
    assert [word.partition("=")[0] for word in options if "=" in word][-1] == "--gres"
    assert found(document, "a lock that is held here holds on")["level"] == "ok"
    assert found(document, "is seen on")["level"] == "ok"
    assert document["facts"]["host"]["machine"]["host"] == document["facts"]["here"]["machine"]["host"]
    assert host.calls("scancel") == []
    assert list(here.root.glob(f"**/{folder.PREFIX}*")) == []


def test_options_that_a_site_demands_come_from_the_experiment(here: User, host: Stubs) -> None:
    wanted = ("resources.account=bio", "resources.qos=spare", "resources.partition=urgent,main")
    here.stk("doctor", here.config, *wanted, "--on-node", "--json")
    (call,) = host.calls("srun")
    assert {"--account=bio", "--qos=spare", "--partition=urgent"} <= set(call)


def test_no_job_stays_in_the_queue_if_no_host_is_free(here: User, host: Stubs) -> None:
    words = "srun: job 4 queued and waiting for resources\n"
    host.fails("srun", f"{words}srun: error: Unable to allocate resources: Requested nodes are busy\n")
    document = told(here.stk("doctor", "--on-node", "--json"))
    assert found(document, "no host was free")["level"] == "note"
    (cancelled,) = host.calls("scancel")
    assert cancelled[0].startswith("--name=stk-doctor-")


def test_a_step_that_fails_is_a_finding_with_the_words_of_slurm(here: User, host: Stubs) -> None:
    host.fails("srun", "srun: error: Unable to allocate resources: Invalid account\n")
    document = told(here.stk("doctor", "--on-node", "--json"))
    assert "Invalid account" in found(document, "a step on a host failed")["found"]


def test_python_missing_on_the_host_is_named(here: User, host: Stubs) -> None:
    host.fails("srun", "slurmstepd: error: execve(): /env/bin/python: No such file or directory\n", code=2)
    document = told(here.stk("doctor", "--on-node", "--json"))
    assert sys.executable in found(document, "a step on a host failed")["follows"]


def test_a_step_that_hangs_is_given_up_and_cancelled(stubs: Stubs, tmp_path: Path) -> None:
    stubs.add("scancel", "")
    stubs.add("srun", f"echo before; : > '{tmp_path}/hangs'; exec /bin/sleep 600")
    output, complaint = "", ""
    while not (tmp_path / "hangs").exists():
        output, complaint = programs.step([], ["x"], name="probe", timeout_s=1, env=os.environ)
    assert (output, complaint) == ("before\n", "no answer in 1 s")
    assert stubs.calls("scancel")[-1][0] == "--name=probe"


def test_ctrl_c_leaves_no_job(stubs: Stubs) -> None:
    stubs.add("scancel", "")
    stubs.add("srun", "kill -INT $PPID; exec /bin/sleep 60")
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            programs.step([], ["x"], name="probe", timeout_s=600, env=os.environ)
    finally:
        signal.signal(signal.SIGINT, before)
    assert stubs.calls("scancel")[-1][0] == "--name=probe"
