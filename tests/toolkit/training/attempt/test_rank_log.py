"""The log of a rank."""

from __future__ import annotations

import logging
import os

import pytest

from tests.toolkit.support.ranks import worlds
from toolkit.run.run_dir import RunDir
from toolkit.system.world import World
from toolkit.training.attempt.rank_log import log_to_file


def test_a_log_replaces_secrets_by_their_variables(run: RunDir, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MYTOKEN", "hush-one-0123")
    world = World.single()
    with log_to_file(run, world):
        try:
            raise KeyError("hush-one-0123")
        except KeyError:
            logging.getLogger("toolkit").exception("no column %r", "hush-one-0123")
    text = run.log(world.nonce, world.rank).read_text()
    assert "hush" not in text
    assert "no column '${oc.env:MYTOKEN}'" in text
    assert "KeyError: '${oc.env:MYTOKEN}'" in text


def test_a_message_with_the_name_of_a_file_that_is_not_utf_8_is_logged(
    run: RunDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = logging.getLogger("toolkit")
    # pytest-xdist cannot pass on what pytest would capture of this message.
    monkeypatch.setattr(log, "propagate", False)
    world = worlds(2)[1]
    with log_to_file(run, world):
        log.error("cannot read %s", os.fsdecode(b"caf_\xe9.jpg"))
    assert r"cannot read caf_\udce9.jpg" in run.log(world.nonce, world.rank).read_text()


def test_rank_0_prints_its_log_to_standard_output(run: RunDir, capfd: pytest.CaptureFixture[str]) -> None:
    world = World.single()
    with log_to_file(run, world):
        logging.getLogger("toolkit").warning("no room for a checkpoint")
    assert "WARNING no room for a checkpoint" in capfd.readouterr().out
    assert "WARNING no room for a checkpoint" in run.log(world.nonce, world.rank).read_text()


def test_full_disk_does_not_change_how_an_attempt_ends(
    run: RunDir, capfd: pytest.CaptureFixture[str]
) -> None:
    world = World.single()
    run.logs.mkdir(exist_ok=True)
    run.log(world.nonce, world.rank).symlink_to("/dev/full")
    with log_to_file(run, world):
        logging.getLogger("toolkit").warning("no room for a checkpoint")
    shown = capfd.readouterr()
    assert "WARNING no room for a checkpoint" in shown.out
    assert "Error" not in shown.err


def test_a_line_is_written_once_if_stdout_is_the_log(run: RunDir, capfd: pytest.CaptureFixture[str]) -> None:
    """In a Slurm job, standard output is the log file."""
    world = World.single()
    run.logs.mkdir(exist_ok=True)
    log = run.log(world.nonce, world.rank)
    with capfd.disabled():
        terminal = os.dup(1)
        with log.open("a") as stream:
            os.dup2(stream.fileno(), 1)
        try:
            with log_to_file(run, world):
                logging.getLogger("toolkit").warning("no room for a checkpoint")
        finally:
            os.dup2(terminal, 1)
            os.close(terminal)
    assert log.read_text().count("no room") == 1
