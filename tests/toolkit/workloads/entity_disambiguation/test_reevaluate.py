"""The files of a finished run and of a second evaluation: slices, predictions, other entities."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.toolkit.support.rescoring import ask
from tests.toolkit.support.tiny_training import Attempt, Lab
from tests.toolkit.workloads.entity_disambiguation.entity_files import (
    database,
    line,
    tiny_entities,
    write_lines,
)
from toolkit.config import load_resolved
from toolkit.errors import DataError
from toolkit.files import read_json, read_json_lines
from toolkit.run.run_dir import RunDir
from toolkit.workloads.entity_disambiguation.data.entities.profiles import Profile
from toolkit.workloads.entity_disambiguation.files import DisambiguationFiles

pytestmark = [pytest.mark.usefixtures("threads_restored"), pytest.mark.slow]


@pytest.fixture(scope="module")
def entities(tmp_path_factory: pytest.TempPathFactory) -> RunDir:
    lab = Lab(tmp_path_factory.mktemp("lab"))
    return lab.train(tiny_entities(lab.folder, "train.reduction=exact"), Attempt())


def dump(run: RunDir, split: str = "test") -> list[dict[str, Any]]:
    return list(read_json_lines(DisambiguationFiles(run).dump(split)))


def evaluated(run: RunDir, folder: Path, *records: dict[str, Any], overrides: Sequence[str] = ()) -> RunDir:
    """The evaluation of a run on a file of these lines."""
    file = write_lines(folder / "more.jsonl", records)
    return RunDir(Path(ask(run, file=str(file), overrides=overrides)["folder"]))


def test_a_finished_run_has_slices_and_every_line_with_its_predictions(entities: RunDir) -> None:
    metrics = read_json(entities.result)["metrics"]
    for split in ("validation", "test"):
        slices = {
            row["name"]: row for row in read_json(DisambiguationFiles(entities).slices(split))["slices"]
        }
        assert list(slices) == ["final_loss", "unif_TL", "unif_NS_all", "crowded"]
        assert slices["final_loss"]["accuracy"] == metrics[split]["accuracy"]
        assert slices["crowded"]["accuracy"] == metrics[split]["accuracy/crowded"]
        source = list(read_json_lines(Path(getattr(load_resolved(entities.config).data, split))))
        found = dump(entities, split)
        assert [{**record, "predictions": None} for record in source] == [
            {**record, "predictions": None} for record in found
        ]
        right = sum(
            said["qid"] == gold
            for record in found
            for said, gold in zip(record["predictions"], record["qids"], strict=True)
        )
        assert right == slices["final_loss"]["correct"]


def test_a_mention_without_a_gold_label_is_predicted_but_not_scored(entities: RunDir, tmp_path: Path) -> None:
    evaluation = evaluated(
        entities,
        tmp_path,
        line(1, [("arn", "river"), ("bel", "town")], gold=[True, False]),
        line(2, [("cor", "ship")], qids=["Q-1"], own={"kept": [1, None]}),
        line(3, []),
    )
    (whole, *_) = read_json(DisambiguationFiles(evaluation).slices("test"))["slices"]
    assert (whole["name"], whole["mentions"]) == ("final_loss", 1)
    lines = dump(evaluation)
    assert [len(record["predictions"]) for record in lines] == [2, 1, 0]
    assert lines[1]["own"] == {"kept": [1, None]}
    assert lines[1]["predictions"][0]["candidates"] == ["cor.river", "cor.town", "cor.ship"]


def save_database_with(unseen: str, folder: Path) -> None:
    """Save the database with one more candidate of arn, which training has not seen."""
    found = database()
    found.add(Profile(entity_id=unseen, title=unseen, description="unseen", mentions=(("arn", 99.0),)))
    found.save(folder)


def test_a_named_database_is_read_as_it_is_now_and_else_the_copy_of_the_run(
    entities: RunDir, tmp_path: Path
) -> None:
    of_training, other = Path(load_resolved(entities.config).data.entity_db), tmp_path / "entity_db"
    kept = ["arn.river", "arn.town", "arn.ship"]
    save_database_with("arn.lake", other)
    save_database_with("arn.fjord", of_training)
    try:
        for overrides, candidates in (
            ([], kept),
            ([f"data.entity_db={other}"], ["arn.lake", *kept]),
            ([f"data.entity_db={of_training}"], ["arn.fjord", *kept]),
        ):
            evaluation = evaluated(entities, tmp_path, line(1, [("arn", "river")]), overrides=overrides)
            assert dump(evaluation)[0]["predictions"][0]["candidates"] == candidates
    finally:
        database().save(of_training)


def test_an_alias_that_is_not_in_the_database_is_reported_with_its_line(
    entities: RunDir, tmp_path: Path
) -> None:
    with pytest.raises(DataError, match=r"more\.jsonl:2: .*gor"):
        evaluated(entities, tmp_path, line(1, [("arn", "river")]), line(2, [("gor", "river")]))


def test_other_slices_can_be_scored(entities: RunDir, tmp_path: Path) -> None:
    overrides = ["data.eval_slices=[unif_NS_all,towns]", "data.slices={towns: \"gold LIKE '%.town'\"}"]
    evaluation = evaluated(entities, tmp_path, line(1, [("arn", "river")]), overrides=overrides)
    rows = read_json(DisambiguationFiles(evaluation).slices("test"))["slices"]
    assert [(row["name"], row["mentions"]) for row in rows] == [
        ("final_loss", 1), ("unif_NS_all", 1), ("towns", 0),
    ]  # fmt: skip
