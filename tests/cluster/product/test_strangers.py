"""A stranger in a cluster's network changes nothing of a job over several hosts, which names it."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest

from tests.cluster.stranger import CONNECTED, stranger
from tests.cluster.waiting import wait_until
from tests.toolkit.tiny import events
from toolkit.run.run_dir import RunDir

from .user import User, curve, slowly, weights


@pytest.mark.slow
def test_a_job_on_two_hosts_refuses_a_stranger_of_its_network(
    user: User, long_alone: RunDir, tmp_path: Path
) -> None:
    """It joins as a rank, floods, and writes over what the ranks say, all the time that they train."""
    run, job_id = user.submit("long", "resources.nodes=2", env=slowly(0.05))
    wait_until(lambda: any(run.ranks("").parent.glob("*.store.json")), lambda: user.story(run))
    (publication,) = run.ranks("").parent.glob("*.store.json")
    place = json.loads(publication.read_text())
    assert "0.0.0.0" not in place["addresses"]
    tmp_path.chmod(0o777)
    on_host = partial(user.cluster._network.on_host, user.cluster.hosts[-1])
    with stranger(on_host, tmp_path / "executed", place["addresses"][0], place["port"]) as other:
        other.await_word(CONNECTED)
        user.wait_until_finished(run, job_id)
    assert other.done["connections"] > 0
    assert not (tmp_path / "executed").exists()
    assert (curve(run), weights(run)) == (curve(long_alone), weights(long_alone))
    own = user.cluster.addresses[user.cluster.hosts[-1]]
    assert [line["address"] for line in events(run, "connection_refused")] == [own]
