"""A command of the user's own, on the cluster: preempted, out of time, killed, and on two hosts."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from tests.cluster.product.stopping.requeue_cases import Case, host, under_way
from tests.cluster.product.user import User, Users, starts
from tests.cluster.waiting import wait_until
from toolkit.files import read_json
from toolkit.run.run_dir import RunDir

#: Counts to a number, saves it when it is asked to leave, and goes on with it; a plain script.
COUNTS = """
import os, pathlib, signal, sys, time
asked = []
signal.signal(signal.SIGTERM, lambda *_: asked.append(1))
latest = os.environ["STK_LATEST_CHECKPOINT"]
step = int(pathlib.Path(latest).read_text()) if latest else 0
print("attempt", os.environ["STK_ATTEMPT"], "from", step, flush=True)
pathlib.Path(os.environ["STK_RUN_DIR"], "pid").write_text(str(os.getpid()))
pathlib.Path("started").touch()
end = 10_000 if not latest else step + 3
while step < end:
    time.sleep(0.05)
    step += 1
    if asked:
        pathlib.Path(os.environ["STK_CHECKPOINT_DIR"], "state").write_text(str(step))
        sys.exit(75)
pathlib.Path(os.environ["STK_RUN_DIR"], "total").write_text(str(step))
"""

#: What torchrun starts: all processes of all hosts add up their ranks.
ADDS = """
import os
import torch
import torch.distributed as dist
dist.init_process_group("gloo")
total = torch.tensor([float(dist.get_rank())])
dist.all_reduce(total)
if dist.get_rank() == 0:
    with open(os.path.join(os.environ["STK_RUN_DIR"], "total"), "w") as stream:
        stream.write(f"{dist.get_world_size()} {total.item():g}")
dist.destroy_process_group()
"""

#: The same with accelerate, which starts its processes where it believes in GPUs, and computes without.
ACCELERATES = """
import os
import torch
from accelerate import Accelerator
accelerator = Accelerator(cpu=True)
total = accelerator.reduce(torch.tensor([float(accelerator.process_index)]), "sum")
if accelerator.is_main_process:
    with open(os.path.join(os.environ["STK_RUN_DIR"], "total"), "w") as stream:
        stream.write(f"{accelerator.num_processes} {total.item():g}")
accelerator.end_training()
"""
LAUNCHES = r"""
accelerate launch --multi_gpu --mixed_precision no --dynamo_backend no \
    --num_machines "$WORLD_SIZE" --num_processes "$WORLD_SIZE" --machine_rank "$RANK" \
    --main_process_ip "$MASTER_ADDR" --main_process_port "$MASTER_PORT" train.py
"""


def submit(
    user: User, script: str, *words: str, command: tuple[str, ...] = ("python",)
) -> tuple[RunDir, str]:
    """Submit a script as a command; return its run and job id."""
    (user.home / "train.py").write_text(script, encoding="utf-8")
    return user.submit_command("code=[train.py]", *words, "--", *command, "train.py")


def wait_until_begun(user: User, run: RunDir, attempt: int = 1) -> None:
    def has_begun() -> bool:
        found = starts(run)
        return (
            len(found) >= attempt and found[-1].get("resumed") is not None and (run.work / "started").exists()
        )

    wait_until(has_begun, lambda: user.story(run))


def logs(run: RunDir) -> str:
    return "".join(path.read_text() for _, _, path in sorted(run.rank_logs()))


def counting(user: User, *resources: str) -> Case:
    """Submit the script that counts."""
    return Case(user, *submit(user, COUNTS, *(f"resources.{each}" for each in resources)))


def check_preempted(case: Case) -> None:
    """It saved when it was preempted, and went on from there."""
    case.finish()
    run = case.run
    first, second = starts(run)
    found = (first["why"], first["saved"], second["resumed"])
    assert found == ("preempted", True, True), case.user.story(run)
    saved = int((run.checkpoints / "state").read_text())
    assert int((run.path / "total").read_text()) == saved + 3
    # Each line of the command stands in its log once.
    assert logs(run).count(f"attempt 2 from {saved}\n") == 1


def test_preempted_command_saves_and_resumes(user: User) -> None:
    case = counting(user, "partition=preemptible", "gres=gpu:4")
    wait_until_begun(user, case.run)
    case.preempt()
    check_preempted(case)


@pytest.fixture(scope="module")
def preempted(users: Users) -> Iterator[dict[str, Case]]:
    """Commands that are preempted in the other ways, side by side; they are still running."""
    shared = (host(users, 3), "gres=gpu:2")
    placed = {
        "no grace": ("partition=preemptible0", host(users, 1), "gres=gpu:4"),
        "signal": ("partition=preemptible", *shared),
        "signal, no grace": ("partition=preemptible0", *shared),
    }
    cases = {name: counting(users.user(name), *resources) for name, resources in placed.items()}
    with under_way(users, cases, unwatched=tuple(cases)):
        for case in cases.values():
            wait_until_begun(case.user, case.run)
        cases["no grace"].preempt()
        # Slurm preempts a while after it was asked, by the settings of that moment.
        cases["no grace"].wait_until_stopped()
        with users.cluster.preempting_with_user_signal():
            # Both of this host make room.
            cases["signal"].preempt()
            for name in ("signal", "signal, no grace"):
                cases[name].wait_until_stopped()
        yield cases


@pytest.mark.slow
@pytest.mark.parametrize("name", ["no grace", "signal", "signal, no grace"])
def test_command_resumes_after_preemption_without_grace_or_by_user_signal(
    preempted: dict[str, Case], name: str
) -> None:
    case = preempted[name]
    check_preempted(case)
    assert ("SIGUSR2" in case.signals) == name.startswith("signal")


@pytest.mark.slow
def test_command_that_runs_out_of_time_resumes_in_another_job(user: User) -> None:
    run, _ = submit(user, COUNTS, "resources.nodes=2", "resources.time=1", "resources.signal_s=30")
    wait_until_begun(user, run)
    # Before anything has ended: where a host dies, no rank is left that could record it.
    wait_until(lambda: len(starts(run)[0]["hosts"]) == 2, lambda: user.story(run))
    wait_until(run.result.exists, lambda: user.story(run))
    first, second = starts(run)
    assert (first["why"], first["saved"], second["resumed"]) == ("time_limit", True, True), user.story(run)
    assert first["job_id"] != second["job_id"]


@pytest.mark.slow
def test_a_killed_command_starts_again(user: User) -> None:
    run, job_id = submit(user, COUNTS)
    wait_until_begun(user, run)
    os.kill(int((run.path / "pid").read_text()), signal.SIGKILL)
    wait_until_begun(user, run, attempt=2)
    assert starts(run)[0]["why"] == "killed"
    assert "saved nothing" in user.status(run)["reason"]
    user.run("stk", "cancel", run.run_id)
    user.wait_for_end(job_id)


@pytest.mark.slow
def test_torchrun_starts_the_processes_of_each_host(user: User) -> None:
    torchrun = ("torchrun", "--nproc-per-node", "2")
    run, job_id = submit(user, ADDS, "resources.nodes=2", command=torchrun)
    user.wait_until_finished(run, job_id)
    assert (run.path / "total").read_text() == "4 6", user.story(run)
    assert len(set(starts(run)[0]["hosts"])) == 2
    assert read_json(run.result)["attempts"] == 1


@pytest.mark.slow
def test_a_shell_script_starts_accelerate_on_each_host(user: User) -> None:
    (user.home / "launch.sh").write_text(LAUNCHES, encoding="utf-8")
    (user.home / "train.py").write_text(ACCELERATES, encoding="utf-8")
    words = ("code=[train.py,launch.sh]", "--nodes", "2", "--", "bash", "launch.sh")
    run, job_id = user.submit_command(*words)
    user.wait_until_finished(run, job_id)
    assert (run.path / "total").read_text() == "2 1", user.story(run)
    assert len(set(starts(run)[0]["hosts"])) == 2
