"""The content of a prepared set of mentions, its fingerprint, and refused lines."""

from __future__ import annotations

import dataclasses
import re
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.toolkit.support.tiny import query as rows
from tests.toolkit.workloads.entity_disambiguation.entity_files import database, line, lines
from toolkit.data.provenance import origins
from toolkit.errors import DataError
from toolkit.workloads.entity_disambiguation.config import EntityMentions
from toolkit.workloads.entity_disambiguation.data.entities.database import EntityDatabase
from toolkit.workloads.entity_disambiguation.data.entities.profiles import Profile
from toolkit.workloads.entity_disambiguation.data.samples.prepared import prepare

Make = Callable[..., EntityMentions]


def refused(data: EntityMentions) -> str:
    folder = Path(data.prepared_dir)
    before = sorted(folder.glob("[!.]*"))
    with pytest.raises(DataError) as caught:
        prepare(data)
    assert sorted(folder.glob("[!.]*")) == before
    return str(caught.value)


def test_every_mention_is_a_sample_with_its_gold_among_its_candidates(data: EntityMentions) -> None:
    prepared = prepare(data)
    assert prepared.splits == {"train": 61, "validation": 23, "test": 11}
    samples = prepared.split("train")
    golds = [gold for (gold,) in rows(prepared, "SELECT gold FROM mentions WHERE split = 'train'")]
    names = dict(rows(prepared, "SELECT eid, qid FROM entities"))
    chosen = samples.candidates(np.arange(61))[np.arange(61), samples.labels]
    assert [names[each] for each in chosen.tolist()] == golds
    assert golds == [gold for record in lines("train") for gold in record["qids"]]


def test_the_database_has_the_values_of_the_arrays(data: EntityMentions) -> None:
    prepared = prepare(data)
    query = (
        "SELECT alias, substr(text, first_character + 1, last_character - first_character), gold, "
        "gold_title, candidates, is_popular, types, tokens FROM mentions "
        "JOIN sentences ON sentence = sentences.id"
    )
    samples = prepared.split("train")
    for place, row in enumerate(rows(prepared, query)[:61]):
        alias, shown, gold, title, candidates, popular, types, tokens = row
        assert alias == shown
        kind = gold.partition(".")[2]
        assert (title, types) == (f"{alias} ({kind})", kind)
        assert candidates == (samples.candidates(np.array([place]))[0] >= 0).sum()
        assert popular == (kind == "river") == (samples.labels[place] == 0)
        assert tokens == samples.lengths[place]


def test_counts_are_from_training(data: EntityMentions) -> None:
    golds = [gold for record in lines("train") for gold in record["qids"]]
    prepared = prepare(data)
    assert dict(rows(prepared, "SELECT * FROM counts")) == {gold: golds.count(gold) for gold in golds}
    for gold, count in rows(prepared, "SELECT gold, count FROM mentions WHERE split = 'test'"):
        assert count == golds.count(gold)


def test_each_change_of_file_database_or_setting_gives_another_set(
    data: EntityMentions, tmp_path: Path, other: Make
) -> None:
    first = prepare(data)
    assert first.built
    assert not prepare(data).built
    grown = database()
    grown.add(Profile(entity_id="new", title="new"))
    grown.save(tmp_path / "grown")
    changes = [
        dataclasses.replace(data, window=3),
        dataclasses.replace(data, entity_db=str(tmp_path / "grown")),
        other("test", line(7, [("arn", "town")])),
    ]
    found = {prepare(each).fingerprint for each in [data, *changes]}
    assert len(found) == 4


def test_an_existing_set_is_opened_without_reading_the_database(
    data: EntityMentions, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reading a large database takes seconds, and every rank opens the set at every start."""
    first = prepare(data)
    monkeypatch.setattr(EntityDatabase, "load", None)
    assert prepare(data).fingerprint == first.fingerprint


def test_fingerprint_does_not_depend_on_the_folder_of_files(data: EntityMentions, tmp_path: Path) -> None:
    copy = tmp_path / "elsewhere.jsonl"
    copy.write_bytes(Path(str(data.test)).read_bytes())
    assert prepare(dataclasses.replace(data, test=str(copy))).fingerprint == prepare(data).fingerprint


def test_one_file_is_cut_by_the_hash_of_its_source(other: Make, data: EntityMentions) -> None:
    records = [line(n, [("arn", "town")], parent_qid=f"Q{n % 50}", parent_title="t") for n in range(200)]
    path = other("train", *records).train
    prepared = prepare(dataclasses.replace(data, path=path, train=None, validation=None, test=None, split=20))
    sizes = prepared.splits
    assert sum(sizes.values()) == 200
    assert sizes["train"] > sizes["validation"] > 0 < sizes["test"]
    splits = rows(prepared, "SELECT DISTINCT split, json_extract(record, '$.parent_qid') FROM sentences")
    assert len(splits) == 50, "every source is in one split"


def test_evaluation_scores_gold_mentions_and_training_omits_unusable_mentions(other: Make) -> None:
    mentions = [("arn", "town"), ("bel", "town"), ("cor", "town")]
    mixed = line(1, mentions, gold=[True, False, True], qids=["arn.town", "bel.town", "Q-1"])
    tested = prepare(other("test", mixed))
    assert tested.split("test").labels.tolist() == [1, -1, -1]
    taught = prepare(other("train", mixed))
    assert taught.split("train").labels.tolist() == [1, 1]
    assert taught.meta["left_out"] == {"unknown gold": 1}
    strict = prepare(other("train", mixed, use_weak_labels=False))
    assert strict.split("train").labels.tolist() == [1]
    assert strict.meta["left_out"] == {"unknown gold": 1, "weak label": 1}
    assert "left out of training: 1 (weak label)" in strict.summary()


def test_weak_labels_are_counted_by_default(other: Make) -> None:
    weak = line(1, [("arn", "town"), ("arn", "town")], gold=[True, False])
    for count_weak, count in ((True, 2), (False, 1)):
        prepared = prepare(other("train", weak, count_weak=count_weak))
        assert rows(prepared, "SELECT count FROM counts") == [(count,)]


def test_gold_outside_the_candidates_is_wrong_in_an_evaluation_and_refused_in_training(other: Make) -> None:
    record = line(1, [("arn", "town")], qids=["bel.town"])
    assert prepare(other("test", record)).split("test").labels.tolist() == [-2]
    assert re.search(
        r"own_train.jsonl:1: qids\[0\] is bel.town, which is not among the candidates of 'arn' "
        r"\(arn.river, arn.town, arn.ship\).*set data.no_candidate to true",
        refused(other("train", record)),
    )


def test_the_class_for_no_candidate_is_first_and_is_the_label_of_golds_outside(other: Make) -> None:
    record = line(1, [("arn", "town"), ("bel", "town")], qids=["cor.town", "bel.town"])
    prepared = prepare(other("train", record, no_candidate=True))
    samples = prepared.split("train")
    assert samples.labels.tolist() == [0, 2]
    assert samples.candidates(np.arange(2))[:, 0].tolist() == [0, 0]
    assert prepared.meta["width"] == 4
    assert rows(prepared, "SELECT qid FROM entities WHERE eid = 0") == [("NC",)]


def test_at_most_max_candidates_are_kept(other: Make) -> None:
    town = line(1, [("arn", "town")])
    prepared = prepare(other("train", town, max_candidates=2, validation=other("test", town).test, test=None))
    assert prepared.meta["width"] == 2
    assert "raise data.max_candidates" in refused(other("train", town, max_candidates=1))


def test_a_faulty_line_is_reported_and_leaves_no_files(other: Make) -> None:
    data = other("train", line(1, [("arn", "town")]), line(2, [("nowhere", "town")]))
    assert "own_train.jsonl:2: aliases[0] 'nowhere' is not in the database" in refused(data)


def test_a_database_that_changes_before_it_is_read_gives_no_set(
    data: EntityMentions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied, load = shutil.copytree(data.entity_db, tmp_path / "changing"), EntityDatabase.load

    def changed(folder: Path) -> EntityDatabase:
        grown = database()
        grown.add(Profile(entity_id="arn.lake", title="arn (lake)", mentions=(("arn", 99.0),)))
        grown.save(folder)
        return load(folder)

    monkeypatch.setattr(EntityDatabase, "load", changed)
    assert "changed while it was read" in refused(dataclasses.replace(data, entity_db=str(copied)))


def test_a_split_without_mentions_is_refused(other: Make) -> None:
    assert "no mention for validation" in refused(other("validation"))
    assert "cannot be read" in refused(dataclasses.replace(other("test"), train="/nowhere/at.all"))


@pytest.mark.parametrize("keys", [{"gold": [False]}, {"qids": ["Q-1"]}, {"qids": ["bel.town"]}], ids=str)
def test_a_validation_without_a_mention_that_has_a_loss_is_refused(other: Make, keys: dict[str, Any]) -> None:
    assert "no mention for validation whose gold" in refused(
        other("validation", line(1, [("arn", "town")]) | keys)
    )


def test_a_system_of_types_that_the_database_does_not_have_is_refused(data: EntityMentions) -> None:
    said = refused(dataclasses.replace(data, type_systems=("kinds", "kindz")))
    assert said.startswith("data.type_systems: found 'kindz', but the types in ")
    assert "are of kinds: " in said


def test_a_sample_has_its_origin(data: EntityMentions) -> None:
    samples = prepare(data).split("test")
    (first,) = list(lines("test"))[:1]
    alias, gold = first["aliases"][0], first["qids"][0]
    (found,) = origins(samples, np.array([0]))
    text = first["sentence"].replace(alias, f"[{alias}]", 1)
    assert str(found) == f"sample 0 ({data.test}:1) [{gold}] {text}"


def test_the_origin_of_a_sample_without_a_row_is_its_number(data: EntityMentions) -> None:
    prepared = prepare(data)
    with closing(sqlite3.connect(prepared.database)) as connection, connection:
        connection.execute("DELETE FROM sentences")
    assert [*map(str, origins(prepared.split("test"), np.array([0, 3])))] == ["sample 0", "sample 3"]


def test_other_mentions_of_a_sentence_are_sorted_by_distance(other: Make) -> None:
    names = ["arn", "bel", "cor", "dun"]
    records = [line(1, [("esk", "town")]), line(2, [(name, "town") for name in names])]
    samples = prepare(other("train", *records)).split("train")
    assert samples.others(np.arange(5), 2).tolist() == [[-1, -1], [2, 3], [1, 3], [2, 4], [3, 2]]


def test_another_file_is_scored_with_the_counts_and_types_of_training(
    data: EntityMentions, other: Make
) -> None:
    base = prepare(data)
    unseen = other("test", line(5, [("arn", "town")]), line(6, [("bel", "ship")])).test
    found = prepare(dataclasses.replace(data, path=unseen), base=base.base())
    assert found.splits == {"test": 2}
    assert found.meta["types"] == base.meta["types"]
    known = dict(rows(base, "SELECT * FROM counts"))
    assert rows(found, "SELECT count FROM mentions") == [
        (known["arn.town"],), (known.get("bel.ship", 0),),
    ]  # fmt: skip


def test_another_file_without_mentions_is_refused(data: EntityMentions, other: Make) -> None:
    base, unseen = prepare(data).base(), other("test", line(5, [])).test
    with pytest.raises(DataError, match=r"own_test\.jsonl: .*mention"):
        prepare(dataclasses.replace(data, path=unseen), base=base)
