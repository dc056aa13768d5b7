"""stk prepare of mentions."""

from __future__ import annotations

import json
from pathlib import Path

from tests.slurm.commands.experiments.test_prepare import prepare_without_torch
from tests.toolkit.workloads.entity_disambiguation.entity_files import write_entity_experiment


def test_mentions_are_prepared_without_torch_and_shown_with_their_slices(tmp_path: Path) -> None:
    config = write_entity_experiment(tmp_path)
    answers = [prepare_without_torch(config, "--json") for _ in range(2)]
    first, second = (json.loads(answer[0]) for answer in answers)
    assert answers[0][-1] == "0 []"
    assert (first["built"], second["built"]) == (True, False)
    assert first["splits"] == {"train": 61, "validation": 23, "test": 11}
    assert first["slice_sizes"]["unif_NS_all"] == first["splits"]
    assert first["path"] == second["path"]
