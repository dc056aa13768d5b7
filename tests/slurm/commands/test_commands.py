"""What the commands do on a machine without Slurm, told as three stories of small runs."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
from collections.abc import Callable, Iterator

import pytest
from filelock import FileLock

from tests.slurm.status.folders import new_run
from tests.slurm.support.environments import ENVIRONMENTS
from tests.slurm.support.user import Answer, User, surroundings
from tests.support.patience import PATIENCE_S, until
from toolkit.files import append_json_line, read_json, read_json_lines
from toolkit.run.attempts.records import read_attempts
from toolkit.run.events import read_events
from toolkit.run.run_dir import RunDir

#: Long enough for a signal to come in between, short enough to wait for.
LONG = ("train.epochs=25", "train.device=cpu")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], User]]:
    """Working folders for the stories, with one prepared set for all of them."""
    root = tmp_path_factory.mktemp("stories")
    with surroundings(root) as patch:
        patch.setenv("COLUMNS", "200")

        def make(name: str) -> User:
            (root / name).mkdir()
            patch.chdir(root / name)
            user = User(root / name)
            data = f"{{path: {user.root}/reviews.tsv, prepared_dir: {root}/prepared}}"
            user.config.write_text(re.sub(r"(?m)^data: .*$", f"data: {data}", user.config.read_text()))
            patch.setenv("STK_EXPERIMENT_DIR", str(user.experiments))
            return user

        yield make


def weights(run: RunDir) -> bytes:
    return (run.last / "model.safetensors").read_bytes()


def is_training(run: RunDir) -> bool:
    """Whether an attempt has begun."""
    return any("time_start" in line for line in read_json_lines(run.attempts))


# -- the first story: nothing happens ------------------------------------------------------------


@pytest.fixture(scope="module")
def undisturbed(place: Callable[[str], User]) -> tuple[User, Answer]:
    """`stk run` in the foreground, as if typed into the shell of an allocation."""
    user = place("undisturbed")
    shell = ENVIRONMENTS["salloc"]
    return user, user.call("run", user.config, *LONG, environ=shell)


@pytest.fixture
def finished(undisturbed: tuple[User, Answer], monkeypatch: pytest.MonkeyPatch) -> User:
    """The user in the folder of the first story: other stories have moved on to theirs."""
    user, _ = undisturbed
    monkeypatch.chdir(user.root)
    monkeypatch.setenv("STK_EXPERIMENT_DIR", str(user.experiments))
    return user


def test_a_run_trains_and_shows_its_report(undisturbed: tuple[User, Answer]) -> None:
    user, answer = undisturbed
    run = user.run(*LONG)
    assert answer.code == 0, answer.err
    shown, idle = sorted(answer.err.splitlines())
    assert shown == f"{run.run_id}: 1 local process, folder {run.path}"
    # The allocation has two hosts.
    assert "rack1node02" in idle
    assert "accuracy" in answer.out
    assert f"report  {run.report_html}\n" in answer.out
    assert run.report_html.is_file()
    assert run.result.is_file()


def test_the_variables_of_an_interactive_shell_are_ignored(undisturbed: tuple[User, Answer]) -> None:
    """They describe the shell: by them this would be no rank, or one of many."""
    user, _ = undisturbed
    (line,) = (line for line in read_json_lines(user.run(*LONG).attempts) if "time_start" in line)
    assert line["world_size"] == 1
    assert line["nonce"].startswith("local-")


def test_a_finished_run_says_so_and_shows_its_report_again(finished: User) -> None:
    run = finished.run(*LONG)
    before = weights(run)
    answer = finished.stk("run", finished.config, *LONG)
    assert answer.code == 0
    assert answer.err == f"{run.run_id} has finished already (--fresh starts anew)\n"
    assert "accuracy" in answer.out
    assert weights(run) == before
    assert len(list(read_json_lines(run.attempts))) == 1


def test_a_finished_run_needs_its_data_no_longer(finished: User) -> None:
    table = finished.root / "reviews.tsv"
    aside = table.rename(finished.root / "aside.tsv")
    try:
        assert finished.stk("run", finished.config, *LONG).code == 0
        assert "has finished already" in finished.stk("submit", finished.config, *LONG).out
    finally:
        aside.rename(table)


def test_run_json_equals_the_row_of_status(finished: User) -> None:
    row = json.loads(finished.stk("run", finished.config, *LONG, "--json").out)
    assert [row] == json.loads(finished.stk("status", "--json").out)
    assert (row["state"], row["step"], row["restarts"]) == ("finished", row["total_steps"], 0)
    assert {"train_loss", "validation_accuracy", "test_accuracy"} <= set(row["metrics"])


def test_a_run_can_be_named_instead_of_its_config(finished: User) -> None:
    assert "has finished already" in finished.stk("run", finished.run(*LONG).run_id).err
    assert "leave out seed=3" in finished.refused("run", "tiny", "seed=3")


def test_submit_and_resume_leave_a_finished_run_alone(finished: User) -> None:
    for command in (["submit", finished.config, *LONG], ["resume", "tiny"]):
        said = finished.told(*command)
        assert "has finished already: stk report" in said
        assert "--fresh starts anew" in said


def test_resume_and_export_name_a_damaged_or_lost_result(finished: User) -> None:
    result = finished.run(*LONG).result
    kept = result.read_bytes()
    try:
        result.write_bytes(kept[:100])
        damaged = finished.stk("resume", "tiny")
        result.unlink()
        lost = finished.refused("export", "tiny", finished.root / "slim")
    finally:
        result.write_bytes(kept)
    assert damaged.code == 0
    assert f"{result} is damaged" in damaged.err
    assert "or its result.json is gone" in lost


def test_there_is_nothing_to_cancel_in_a_finished_run(finished: User) -> None:
    said = finished.told("cancel", "tiny")
    assert said == f"{finished.run(*LONG).run_id}: not live (finished), nothing to cancel\n"


def test_a_report_shows_tables_and_writes_a_page(finished: User) -> None:
    run = finished.run(*LONG)
    run.report_html.unlink()
    told = finished.stk("run", finished.config, *LONG)
    assert f"stk report {run.run_id}" in told.err
    assert "report  " not in told.out
    said = finished.told("report", "tiny")
    assert "macro F1" in said
    assert said.endswith(f"report  {run.report_html}\n")
    assert run.report_html.is_file()


def test_a_report_in_json_is_one_document(finished: User) -> None:
    run = finished.run(*LONG)
    for named in (["tiny"], [run.run_id, run.path]):
        summaries = json.loads(finished.stk("report", *named, "--json").out)
        assert [summary["run_id"] for summary in summaries] == [run.run_id] * len(named)


def test_a_report_reads_the_metrics_once(finished: User, monkeypatch: pytest.MonkeyPatch) -> None:
    read = []
    monkeypatch.setattr(
        "toolkit.report.run.summary.read_json_lines", lambda path: read.append(path) or read_json_lines(path)
    )
    finished.told("report", "tiny")
    assert read == [finished.run(*LONG).metrics]


def test_the_report_of_one_run_is_also_written_elsewhere(finished: User) -> None:
    run = finished.run(*LONG)
    run.report_html.unlink()
    said = finished.stk("report", "tiny", "--output", finished.root / "one").out
    assert said.endswith(f"report  {finished.root / 'one' / 'report.html'}\n")
    assert json.loads((finished.root / "one" / "report.json").read_text())["run_id"] == run.run_id
    assert not run.report_html.exists()


def test_comparison_in_a_folder_names_a_run_that_cannot_be_read(finished: User) -> None:
    run = finished.run(*LONG)
    broken = run.path.parent / "broken-0"
    broken.mkdir()
    (broken / "config.yaml").write_text("name: broken\n")
    (broken / "result.json").write_text("[1, 2")
    try:
        answer = finished.stk("report", run.run_id, "broken-0", "--output", finished.root / "all")
        without_any = finished.stk("report", "broken-0", "broken-0", "--json")
    finally:
        shutil.rmtree(broken)
    assert (answer.code, without_any.code) == (0, 2)
    assert "broken-0 cannot be read" in answer.err
    assert answer.out.endswith(f"report  {finished.root / 'all' / 'report.html'}\n")
    assert (finished.root / "all" / "runs.csv").is_file()


# -- the second story: cancelled in the background, and resumed -----------------------------------


class Background:
    """What was seen while a submitted run was live, cancelled, and resumed."""

    def __init__(self, user: User) -> None:
        self.user = user
        self.run = user.run(*LONG)
        self.submitted = user.stk("submit", user.config, *LONG, "--cluster", "local")
        self.job_id = str(next(read_json_lines(self.run.submissions))["job_id"])
        self.row_at_once = self._row()
        follower = user.start("logs", "tiny", "-f")
        until(lambda: self.run.metrics.exists() and any(read_json_lines(self.run.metrics)))
        processes = int(self.job_id.removeprefix("local-"))
        # Paused, so that it does not finish meanwhile.
        os.killpg(processes, signal.SIGSTOP)
        self.row_live = self._row()
        self.again = user.stk("submit", user.config, *LONG, "--cluster", "local")
        self.again_fresh = user.stk("submit", user.config, *LONG, "--cluster", "local", "--fresh")
        self.again_here = user.stk("run", user.config, *LONG)
        self.cancelled = user.stk("cancel", "tiny")
        os.killpg(processes, signal.SIGCONT)
        # The follower ends when the run does.
        self.log, _ = follower.communicate(timeout=PATIENCE_S)
        self.row_cancelled = self._row()
        self.failed_meanwhile = self.run.failure.exists()
        self.resumed = user.stk("resume", "tiny", "--cluster", "local", "--json")
        user.call("logs", "tiny", "-f")
        self.row_finished = self._row()

    def _row(self) -> dict[str, object]:
        (row,) = json.loads(self.user.stk("status", "--json").out)
        return dict(row)


@pytest.fixture(scope="module")
def background(place: Callable[[str], User]) -> Background:
    return Background(place("background"))


def test_a_local_submission_prints_id_job_and_folder(background: Background) -> None:
    run, answer = background.run, background.submitted
    # The same short text may stand in two splits, of which a warning tells.
    errors = [line for line in answer.err.splitlines() if not line.startswith("warning: ")]
    assert (answer.code, errors) == (0, [])
    assert re.search(rf"^run +{run.run_id}$", answer.out, re.MULTILINE)
    assert re.search(rf"^job +{background.job_id} \(local processes\)$", answer.out, re.MULTILINE)
    assert re.search(rf"^folder +{run.path}$", answer.out, re.MULTILINE)
    assert f"stk logs -f {run.run_id}" in answer.out


def test_a_local_run_is_live_from_the_first_moment(background: Background) -> None:
    assert background.row_at_once["state"] in ("pending", "running")
    assert background.row_at_once["job_id"] == background.job_id
    assert background.row_live["state"] == "running"


def test_a_live_local_run_is_not_started_twice(background: Background) -> None:
    for answer in (background.again, background.again_fresh, background.again_here):
        assert answer.code == 2
        assert f"is running, job {background.job_id}: it cannot be started twice" in answer.err
    assert not (background.user.experiments / "old").exists()


def test_a_cancelled_local_run_saves_and_says_why_it_left(background: Background) -> None:
    assert background.cancelled.out == f"{background.run.run_id}: asked to save and exit\n"
    row = background.row_cancelled
    assert row["state"] == "cancelled"
    assert re.fullmatch(r"cancelled after step \d+; .*", str(row["reason"]))
    (event,) = read_events(background.run, "cancel_requested")
    assert event.facts["job_id"] == background.job_id
    assert not background.failed_meanwhile


def test_following_a_log_ends_with_the_run(background: Background) -> None:
    assert "rank 0 of 1" in background.log


def test_a_resumed_run_ends_with_the_weights_of_one_that_never_stopped(
    background: Background, undisturbed: tuple[User, Answer]
) -> None:
    facts = json.loads(background.resumed.out)
    assert facts["run_id"] == background.run.run_id
    assert (facts["cluster"], facts["state"]) == ("local", "pending")
    assert facts["job_id"] != background.job_id
    row = background.row_finished
    assert (row["state"], row["restarts"], row["step"]) == ("finished", 1, row["total_steps"])
    first, second = (line for line in read_json_lines(background.run.attempts) if "time_start" in line)
    assert (first["first_step"], second["resumed"]) == (0, True)
    assert second["first_step"] > 0
    assert weights(background.run) == weights(undisturbed[0].run(*LONG))


# -- the third story: interrupted in the foreground, and started again ----------------------------


def interrupt(
    user: User, name: str, condition: Callable[[], bool], *options: object
) -> tuple[Answer, dict[str, object]]:
    """What a foreground run answers to a signal, and its status."""
    process = user.start("run", user.config, *LONG, *options)
    until(condition, process)
    process.send_signal(signal.Signals[name])
    out, err = process.communicate(timeout=PATIENCE_S)
    (row,) = json.loads(user.stk("status", "--json").out)
    return Answer(process.returncode, out, err), row


def check_interrupted(run: RunDir, name: str, answer: Answer, row: dict[str, object]) -> None:
    assert answer.code == 130, answer.err
    assert "Traceback" not in answer.err
    assert answer.err.splitlines()[-1] == (
        f"interrupted; `stk resume {run.run_id}` or the same command continues it"
    )
    assert row["state"] == "cancelled"
    assert f"stopped by {name} after step" in str(row["reason"])
    (attempt,) = read_attempts(run)
    # None is saved where the data were still being prepared.
    assert max(run.checkpoint_steps(), default=0) == attempt.last_step
    assert not run.failure.exists()


@pytest.mark.slow
def test_a_signal_while_the_ranks_still_import_torch_is_not_lost(place: Callable[[str], User]) -> None:
    user = place("early")
    run = user.run(*LONG)
    answer, row = interrupt(user, "SIGTERM", lambda: any(run.logs.glob("*")), "--json")
    check_interrupted(run, "SIGTERM", answer, row)
    assert json.loads(answer.out) == row


def test_an_interrupted_run_is_finished_by_the_same_command(
    place: Callable[[str], User], undisturbed: tuple[User, Answer]
) -> None:
    """On one process after two: the number of processes changes nothing."""
    user = place("interrupted")
    run = user.run(*LONG)
    answer, row = interrupt(user, "SIGINT", lambda: is_training(run), "--procs", 2)
    check_interrupted(run, "SIGINT", answer, row)
    answer = user.call("run", user.config, *LONG)
    assert answer.code == 0, answer.err
    assert read_json(run.result)["attempts"] == 2
    assert weights(run) == weights(undisturbed[0].run(*LONG))


# -- runs that fail ------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_run_that_diverges_fails_with_one_message(finished: User) -> None:
    wild = ("name=wild", "optimizer.kind=sgd", "optimizer.lr=1e30", "train.epochs=3")
    answer = finished.call("run", finished.config, *wild, "--json")
    assert answer.code == 4
    assert answer.err.count("error: ") == 1
    assert "the loss of step 2 is nan" in answer.err
    assert "try a smaller optimizer.lr" in answer.err
    assert "rank 0 on " in answer.err
    assert "what to do" in answer.err
    assert "Traceback" not in answer.err
    (row,) = json.loads(finished.stk("status", "wild", "--json").out)
    assert row["state"] == "failed"
    assert json.loads(answer.out) == row
    assert "the loss of step 2 is nan" in row["reason"]
    shown = finished.stk("logs", "wild").out
    assert shown.startswith("error: the loss of step 2 is nan")


@pytest.mark.slow
def test_bad_data_that_only_preparation_finds_leave_nothing_behind(finished: User) -> None:
    table = finished.root / "late.tsv"
    table.write_text((finished.root / "reviews.tsv").read_text() + "fine\tgood\n" * 5000 + "a\tb\tc\n")
    before = finished.runs
    answer = finished.call("run", finished.config, "name=late", f"data.path={table}")
    assert answer.code == 2
    assert answer.err.count("error: ") == 1
    assert "late.tsv:5122: 3 fields" in answer.err
    assert finished.runs == before
    assert not list(finished.experiments.glob("late*"))


# -- without training ----------------------------------------------------------------------------


def test_a_foreground_run_cannot_be_cancelled_from_elsewhere(user: User) -> None:
    run, other, hostile = (new_run(user.experiments, name) for name in ("here-1", "other-2", "hostile-3"))
    line = {"cluster": "local", "job_id": "local-1", "host": "far\x1b[2Jaway", "name": "n", "time": 1.0}
    append_json_line(hostile.submissions, line | {"boot": "another"})
    with FileLock(run.alive), FileLock(hostile.alive):
        answer = user.stk("cancel", run.run_id, hostile.run_id, other.run_id)
    assert answer.code == 2
    assert "cancel it there" in answer.err
    assert "\x1b" not in answer.err
    # It keeps no other run from its turn.
    assert f"{other.run_id}: not live" in answer.out
    assert "runs in the foreground of some terminal" in answer.err


def test_a_run_that_has_no_log_yet_says_so(user: User) -> None:
    run = new_run(user.experiments)
    assert "has no log of rank 0 yet" in user.refused("logs", run.run_id)
    append_json_line(run.events, {"event": "x"})
    assert user.stk("logs", run.run_id, "-f").code == 0
