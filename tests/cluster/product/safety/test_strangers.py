"""A stranger in a cluster's network changes nothing of a job over several hosts, which names it."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest

from tests.cluster.product.user import User, assert_same_training
from tests.cluster.stranger import CONNECTED, stranger
from tests.cluster.waiting import wait_until
from tests.toolkit.support.tiny import events
from toolkit.run.run_dir import RunDir

#: Before anything else a rank beyond the first waits, until the test lets it go.
_LATE = """\
import os, pathlib, time
go = pathlib.Path({go!r})
while os.environ.get("SLURM_PROCID", "0") != "0" and not go.exists():
    time.sleep(0.05)
"""


@pytest.mark.slow
def test_job_on_two_hosts_refuses_a_stranger_who_connects_before_its_ranks(
    user: User, quick_alone: RunDir, tmp_path: Path
) -> None:
    """It claims ranks, joins as a rank of torch's, and floods before the other host's rank has started."""
    late = user.home / "late"
    late.mkdir()
    (late / "sitecustomize.py").write_text(_LATE.format(go=str(user.home / "go")))
    run, job_id = user.submit("quick", "resources.nodes=2", env={"PYTHONPATH": str(late)})
    wait_until(lambda: any(run.ranks("").parent.glob("*.store.json")), lambda: user.story(run))
    (publication,) = run.ranks("").parent.glob("*.store.json")
    place = json.loads(publication.read_text())
    first, *_, last = (user.cluster.addresses[host] for host in user.cluster.hosts)
    assert place["addresses"] == [first]
    tmp_path.chmod(0o777)
    on_host = partial(user.cluster.network.on_host, user.cluster.hosts[-1])
    with stranger(on_host, tmp_path / "executed", first, place["port"]) as other:
        other.await_word(CONNECTED)
        wait_until(lambda: bool(events(run, "connection_refused")), lambda: user.story(run))
        (user.home / "go").touch()
        user.wait_until_finished(run, job_id)
    assert other.done["claims"] > 0
    assert not (tmp_path / "executed").exists()
    assert_same_training(run, quick_alone)
    assert [line["address"] for line in events(run, "connection_refused")] == [last]
