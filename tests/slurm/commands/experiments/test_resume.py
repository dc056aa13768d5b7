"""`stk resume` of a run whose data have changed since."""

from __future__ import annotations

import pytest

from tests.cluster.waiting import wait_until
from tests.slurm.support.user import User
from toolkit.files import read_json
from toolkit.run.attempts.records import read_attempts
from toolkit.run.events import FORCED, read_events


@pytest.mark.slow
@pytest.mark.usefixtures("stubs")
def test_resume_refuses_changed_data_without_force(user: User) -> None:
    asked_to_stop = {"STK_FAULTS": "term at=forward step=6"}
    assert user.call("run", user.config, "train.epochs=3", environ=asked_to_stop).code == 130
    run = user.run("train.epochs=3")
    (first,) = read_attempts(run)
    table = user.root / "reviews.tsv"
    table.write_text(table.read_text().replace("awful", "horrid"))

    for command in ("run", "resume"):
        refused = user.call(command, run.run_id)
        assert refused.code == 2
        assert f"stk resume {run.run_id} --force" in refused.err
    assert len(read_attempts(run)) == 1
    assert run.checkpoint_steps() != []

    assert user.call("resume", run.run_id, "--force").code == 0
    wait_until(run.result.exists, lambda: str(read_json(run.failure)))
    assert read_attempts(run)[-1].first_step == first.last_step == 7
    assert read_json(run.result)["state"] == "finished"

    # The run is finished: nothing is forced, and a second change is still named.
    forced = [*read_events(run, FORCED)]
    table.write_text(table.read_text().replace("horrid", "dire"))
    for words in (("--force",), ()):
        assert "finished with other data" in user.call("resume", run.run_id, *words).err
    assert [*read_events(run, FORCED)] == forced
