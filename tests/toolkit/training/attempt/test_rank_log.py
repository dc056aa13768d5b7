"""The log of a rank."""

from __future__ import annotations

import logging

import pytest

from toolkit.run.run_dir import RunDir
from toolkit.system.world import World
from toolkit.training.attempt.rank_log import log_to_file


def test_a_log_names_the_variable_of_a_secret_that_an_error_quotes(
    run: RunDir, monkeypatch: pytest.MonkeyPatch
) -> None:
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
