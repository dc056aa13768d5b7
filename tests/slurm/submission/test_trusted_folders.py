"""Commands that execute something of a run's folder refuse one that somebody else can have written."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.slurm.support.fake_slurm import FakeSlurm
from tests.slurm.support.user import Answer, User, user_in
from toolkit.config import to_yaml
from toolkit.files import append_json_line, write_json
from toolkit.run.create_run import create_run
from toolkit.run.folder_trust import VARIABLE
from toolkit.run.run_dir import RunDir

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
STRANGER = 65534


@pytest.fixture(scope="module")
def user(tmp_path_factory: pytest.TempPathFactory) -> Iterator[User]:
    """A working folder, without Slurm, in whose experiments somebody has planted the folder of a run."""
    with user_in(tmp_path_factory.mktemp("user")) as user:
        run = create_run(user.experiment(), user.experiments)
        planted = str(user.root / "was-here")
        run.job.write_text(to_yaml(user.experiment(f"resources.setup=[': > {planted}']").resources))
        for package in ("toolkit", "slurm"):
            (run.code / package / "__init__.py").write_text(
                f"import os; print(os.environ.get({VARIABLE!r}), file=open({planted!r}, 'w'))\n"
            )
        run.submitit.mkdir()
        (run.submitit / "1_submitted.pkl").write_bytes(b"cos\nsystem\n(S': > %b'\ntR." % planted.encode())
        # A run that has saved goes on with its own code.
        run.checkpoint(1).mkdir(parents=True)
        append_json_line(run.step_records, {"step": 1, "samples": "00000000", "loss": 1.0})
        for path in [run.path, *run.path.rglob("*")]:
            os.chown(path, STRANGER, STRANGER)
        yield user


def executed(user: User) -> bool:
    return (user.root / "was-here").exists()


def assert_refused(user: User, answer: Answer) -> None:
    assert answer.code == 2, answer.err
    assert "Traceback" not in answer.err
    for fact in (str(user.run().path), "user nobody", "drwx", "--trust-folder"):
        assert fact in answer.err
    assert not executed(user)


@pytest.mark.parametrize(
    "words",
    [
        ("run", "tiny.yaml"),
        ("run", "RUN"),
        ("submit", "tiny.yaml", "--cluster", "local"),
        ("resume", "RUN", "--cluster", "local"),
        ("sweep", "tiny.yaml", "optimizer.lr=0.001", "--cluster", "local"),
    ],
)
def test_an_unfinished_run_of_somebody_else_is_not_started(user: User, words: tuple[str, ...]) -> None:
    words = tuple(user.run().run_id if word == "RUN" else word for word in words)
    assert_refused(user, user.call(*words))


def test_step_of_a_run_of_another_user_is_not_replayed(user: User) -> None:
    assert_refused(user, user.call("replay", user.run().run_id, "--step", "1"))


@pytest.fixture
def planted_sweep(user: User) -> Iterator[Path]:
    """The folder of a sweep, which somebody has planted before its name was used."""
    folder = user.experiments / "sweeps" / "planted"
    folder.mkdir(parents=True)
    os.chown(folder, STRANGER, STRANGER)
    yield folder
    shutil.rmtree(folder)


def test_a_sweep_is_not_begun_in_a_planted_folder(user: User, fake: FakeSlurm, planted_sweep: Path) -> None:
    before = user.listing
    answer = user.call("sweep", "tiny.yaml", "optimizer.lr=0.005,0.006", "--name", "planted")
    assert answer.code == 2, answer.err
    for fact in (str(planted_sweep), "user nobody", "--trust-folder"):
        assert fact in answer.err
    assert fake.calls("sbatch") == []
    assert user.listing == before


def test_a_chain_with_a_planted_run_is_not_submitted(user: User, fake: FakeSlurm) -> None:
    answer = user.call("submit", "tiny.yaml", "seed=7", "--then", "tiny.yaml")
    assert_refused(user, answer)


@pytest.fixture
def finished(user: User) -> Iterator[RunDir]:
    run = user.run()
    write_json(run.result, {"state": "finished", "best": {"step": 1}})
    yield run
    run.result.unlink()


def test_finished_run_of_another_user_is_not_evaluated(user: User, finished: RunDir) -> None:
    assert_refused(user, user.call("evaluate", finished.run_id))


@pytest.mark.parametrize(
    "words",
    [
        ("status",),
        ("report", "RUN"),
        ("logs", "RUN"),
        ("diff", "RUN", "RUN"),
        ("clean", "--dry-run"),
        ("reproduce", "RUN"),
        ("plan", "tiny.yaml"),
    ],
)
def test_commands_that_only_read_are_allowed_and_execute_nothing(
    user: User, finished: RunDir, words: tuple[str, ...]
) -> None:
    answer = user.call(*(finished.run_id if word == "RUN" else word for word in words))
    assert "--trust-folder" not in answer.err
    assert "Traceback" not in answer.err
    assert not executed(user)


@pytest.fixture
def trusted(user: User) -> Iterator[Callable[[], list[str]]]:
    """Which folders the planted code was told are trusted, when it was executed."""
    planted = user.root / "was-here"
    yield lambda: planted.read_text().split()
    planted.unlink(missing_ok=True)


@pytest.mark.parametrize(
    "words",
    [
        ("replay", "RUN", "--step", "1", "--trust-folder"),
        ("replay", "--trust-folder", "RUN", "--step", "1"),
        ("replay", "RUN", "--step", "1", "--trust-folder=FOLDER"),
    ],
)
def test_trust_folder_executes_that_folder_and_trusts_no_other(
    user: User, trusted: Callable[[], list[str]], words: tuple[str, ...]
) -> None:
    run = user.run()
    place = {"RUN": run.run_id, "--trust-folder=FOLDER": f"--trust-folder={run.path}"}
    assert user.call(*(place.get(word, word) for word in words)).code != 0
    assert trusted() == [str(run.path)]


def test_trust_folder_star_trusts_every_folder(user: User, trusted: Callable[[], list[str]]) -> None:
    assert user.call("replay", user.run().run_id, "--step", "1", "--trust-folder=*").code != 0
    assert trusted() == ["*"]


def test_trusting_another_folder_does_not_help(user: User) -> None:
    other = f"--trust-folder={user.root / 'prepared'}"
    (user.root / "prepared").mkdir(exist_ok=True)
    assert_refused(user, user.call("replay", user.run().run_id, "--step", "1", other))


def test_a_trusted_folder_that_does_not_exist_is_named(user: User) -> None:
    answer = user.call("run", "tiny.yaml", "--trust-folder=/nowhere/runs")
    assert (answer.code, answer.err) == (2, "error: --trust-folder=/nowhere/runs: there is no such folder\n")
