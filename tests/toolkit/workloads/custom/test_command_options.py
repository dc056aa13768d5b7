"""Options for keys of `resources`, in front of `-- COMMAND`."""

from __future__ import annotations

import json

from tests.slurm.support.user import User


def test_options_for_resources_stand_before_the_dashes(user: User) -> None:
    shown = user.stk("plan", "--nodes", "2", "--json", "--", "python", "-V")
    assert json.loads(shown.out)["config"]["resources"]["nodes"] == 2
