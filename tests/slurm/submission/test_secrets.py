"""The values of secret variables are in no file of a run and in nothing that a command prints."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.slurm.support.fake_slurm import FakeSlurm
from tests.slurm.support.user import User

SECRETS = {"MYTOKEN": "hush-one-0123", "DBPASSWD": "hush-two-4567", "AWS_SECRET_ACCESS_KEY": "hush-three-89"}
#: The column of the texts: a secret that a run needs to train.
COLUMN = "hush-column-42"


@pytest.fixture
def secretive(user: User, monkeypatch: pytest.MonkeyPatch) -> User:
    """An experiment that takes a secret, in an environment with more of them."""
    for name, value in {**SECRETS, "COLUMN_KEY": COLUMN}.items():
        monkeypatch.setenv(name, value)
    table = user.root / "reviews.tsv"
    table.write_text(table.read_text().replace("text\t", f"{COLUMN}\t", 1))
    text = user.config.read_text()
    user.config.write_text(text.replace("reviews.tsv,", 'reviews.tsv, text_column: "${oc.env:COLUMN_KEY}",'))
    return user


def telling(folder: Path) -> list[str]:
    """Files that hold a secret."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return [str(path) for path in files if b"hush-" in path.read_bytes()]


def test_submission_holds_references_and_no_secrets(secretive: User, fake: FakeSlurm) -> None:
    overrides = ["resources.environment.A=<${oc.env:MYTOKEN}>"]
    planned = secretive.stk("plan", secretive.config, *overrides)
    answer = secretive.stk("submit", secretive.config, *overrides)
    assert answer.code == 0, answer.err
    assert telling(secretive.experiments) == []
    assert "hush-" not in planned.out + planned.err + answer.out + answer.err
    assert "${oc.env:COLUMN_KEY}" in planned.out
    assert "${MYTOKEN?" in planned.out


@pytest.mark.slow
def test_failed_run_reveals_no_secret(secretive: User) -> None:
    answer = secretive.call("run", secretive.config, "optimizer.lr=1e30", "train.clip_norm=null")
    assert answer.code == 4, answer.err
    (run,) = secretive.experiments.glob("*/failure.json")
    assert "${oc.env:COLUMN_KEY}" in (run.parent / "config.yaml").read_text()
    assert telling(run.parent) == []
    assert "hush-" not in answer.out + answer.err
    for command in ("status", "report", "reproduce", "logs"):
        told = secretive.stk(command, run.parent)
        assert "hush-" not in told.out + told.err
    assert telling(run.parent) == []


def test_a_message_that_quotes_a_value_names_its_variable(secretive: User, fake: FakeSlurm) -> None:
    table = secretive.root / "reviews.tsv"
    table.write_text(table.read_text().replace(COLUMN, "another", 1))
    for command in (("plan",), ("submit",), ("run",), ("prepare",), ("submit", "--cluster", "local")):
        answer = secretive.stk(command[0], secretive.config, *command[1:])
        assert answer.code == 2
        assert "hush-" not in answer.out + answer.err
        assert "${oc.env:COLUMN_KEY}" in answer.err
    assert telling(secretive.root / "prepared") == []
    assert telling(secretive.experiments) == []


def test_run_without_its_secret_is_shown_but_not_resumed(
    secretive: User, fake: FakeSlurm, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert secretive.stk("submit", secretive.config).code == 0
    run = secretive.run()
    assert secretive.stk("cancel", run.path).code == 0
    monkeypatch.delenv("COLUMN_KEY")
    assert secretive.stk("status", run.path).code == 0
    said = secretive.refused("resume", run.path)
    assert "COLUMN_KEY" in said
    assert "data.text_column" in said
    assert len(fake.jobs) == 1
