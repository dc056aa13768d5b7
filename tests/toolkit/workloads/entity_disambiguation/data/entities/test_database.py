"""The entity database: look-ups, changes and files."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.toolkit.workloads.entity_disambiguation.data.entities.files import PROFILES, write
from toolkit.errors import DataError
from toolkit.workloads.entity_disambiguation.data.entities import read_folder
from toolkit.workloads.entity_disambiguation.data.entities.contents import Contents, Limits
from toolkit.workloads.entity_disambiguation.data.entities.database import (
    EntityDatabase,
    edited,
    import_profiles,
)
from toolkit.workloads.entity_disambiguation.data.entities.profiles import Profile
from toolkit.workloads.entity_disambiguation.data.entities.write_folder import folder_fingerprint


@pytest.fixture
def database(tmp_path: Path) -> EntityDatabase:
    return import_profiles(write(tmp_path / "p.jsonl", PROFILES))


@pytest.fixture
def folder(database: EntityDatabase, tmp_path: Path) -> Path:
    database.save(tmp_path / "db")
    return tmp_path / "db"


# ---- answers


def test_candidates_are_sorted_by_score_and_id() -> None:
    database = EntityDatabase()
    for qid, score in (("Q1", 2), ("Q3", 5), ("Q2", 5), ("Q10", 5)):
        database.add(Profile(entity_id=qid, title=qid, mentions=(("x", score),)))
    assert database.candidates("x") == [("Q3", 5), ("Q2", 5), ("Q10", 5), ("Q1", 2)]


def test_an_alias_is_found_in_any_spelling(database: EntityDatabase) -> None:
    assert database.candidates("Ivory Coast!") == database.candidates("ivory coast") == [("Q1008", 9)]
    assert database.candidates("nowhere") == ()
    assert not database.has_alias("nowhere")


def test_an_unchanged_alias_takes_priority_over_its_normalised_form() -> None:
    database = EntityDatabase()
    database.add(Profile(entity_id="a", title="a", mentions=(("run.v", 1),)))
    database.add(Profile(entity_id="b", title="b", mentions=(("runv", 1),)))
    assert database.candidates("run.v") == [("a", 1)]


def test_an_entity_has_title_description_types_relations_and_aliases(database: EntityDatabase) -> None:
    assert database.title("Q1008") == "Ivory Coast"
    assert database.description("Q1008") == "a country"
    assert database.types("Q1008") == {"wiki": ["sovereign state", "country"]}
    assert database.relations("Q1008") == [("borders", "Q912"), ("borders", "Q1020"), ("capital", "Q3768")]
    assert database.aliases("Q1008") == ["cote divoire", "ivory coast"]
    assert (database.description("Q881"), database.types("Q881"), database.relations("Q881")) == ("", {}, ())
    assert database.entity_ids == ["Q1008", "Q180573", "Q881"]
    assert "Q912" not in database
    assert (len(database), len(database.contents.candidates)) == (3, 4)


# ---- changes


def test_an_entity_is_added_once(database: EntityDatabase) -> None:
    database.add(Profile(entity_id="Q5", title="Five", mentions=(("vietnam", 4),)))
    assert [qid for qid, _ in database.candidates("vietnam")] == ["Q881", "Q5", "Q180573"]
    with pytest.raises(DataError, match=r"Q5 is in the database already .*update"):
        database.add(Profile(entity_id="Q5", title="Five"))


def test_an_update_replaces_all_data(database: EntityDatabase) -> None:
    database.update(Profile(entity_id="Q1008", title="Côte d'Ivoire", mentions=(("ci", 1),)))
    assert database.profile("Q1008") == Profile(
        entity_id="Q1008", title="Côte d'Ivoire", mentions=(("ci", 1),)
    )
    assert not database.has_alias("ivory coast")


def test_removing_an_entity_removes_its_aliases_and_relations(database: EntityDatabase) -> None:
    database.remove("Q881")
    assert database.candidates("vietnam") == [("Q180573", 3)]
    assert database.relations("Q180573") == ()
    database.remove("Q180573")
    assert not database.has_alias("vietnam")
    assert database.entity_ids == ["Q1008"]


@pytest.mark.parametrize("change", ["remove", "profile"])
def test_an_unknown_entity_is_an_error(database: EntityDatabase, change: str) -> None:
    with pytest.raises(DataError, match="the database has no entity Q7"):
        getattr(database, change)("Q7")
    with pytest.raises(DataError, match="the database has no entity Q7"):
        database.update(Profile(entity_id="Q7", title="Seven"))


_NAMES = st.sampled_from("abcdef")
_PROFILE = st.builds(
    Profile,
    entity_id=_NAMES,
    title=st.just("t"),
    description=st.sampled_from(["", "d"]),
    mentions=st.lists(st.tuples(_NAMES, st.integers(0, 3)), max_size=4).map(tuple),
    types=st.dictionaries(_NAMES, st.lists(_NAMES, max_size=3).map(tuple), max_size=2),
    relations=st.lists(st.tuples(_NAMES, _NAMES), max_size=4).map(tuple),
)


@given(st.lists(_PROFILE, max_size=12), st.lists(_NAMES, max_size=4))
def test_index_and_tables_agree_after_any_changes(profiles: list[Profile], removed: list[str]) -> None:
    database = EntityDatabase(Contents(limits=Limits(max_candidates=3)))
    for profile in profiles:
        (database.update if profile.entity_id in database else database.add)(profile)
    gone = {qid for qid in removed if qid in database}
    for qid in gone:
        database.remove(qid)
    fresh = EntityDatabase(database.contents)
    for qid in database.entity_ids:
        assert database.aliases(qid) == fresh.aliases(qid)
        assert all(qid in dict(database.candidates(alias)) for alias in database.aliases(qid))
    assert all(each[1] not in gone for qid in database.entity_ids for each in database.relations(qid))


@settings(max_examples=25)
@given(st.lists(_PROFILE, max_size=8, unique_by=lambda each: each.entity_id))
def test_a_saved_database_is_loaded_unchanged(
    tmp_path_factory: pytest.TempPathFactory, profiles: list[Profile]
) -> None:
    database = EntityDatabase()
    for profile in profiles:
        database.add(profile)
    folder = tmp_path_factory.mktemp("saved") / "db"
    database.save(folder)
    loaded = EntityDatabase.load(folder)
    assert [*loaded.profiles()] == [*database.profiles()]


# ---- fingerprints


def test_changed_files_have_another_fingerprint(folder: Path) -> None:
    before = folder_fingerprint(folder)
    shutil.copytree(folder, folder.with_name("copy"))
    assert folder_fingerprint(folder.with_name("copy")) == before
    with edited(folder) as database:
        database.remove("Q881")
    assert folder_fingerprint(folder) != before


# ---- saving


def test_a_database_that_is_replaced_between_two_of_its_files_is_read_again(
    folder: Path, database: EntityDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    parsed, saves = read_folder._parsed, iter([database.save])
    database.add(Profile(entity_id="Q1", title="Ghana", mentions=(("gold coast", 1.0),)))

    def replaced(path: Path) -> dict[str, Any]:
        found = parsed(path)
        if path.name == "qid2title.json" and (save := next(saves, None)):
            save(folder)
        return found

    monkeypatch.setattr(read_folder, "_parsed", replaced)
    assert [*EntityDatabase.load(folder).profiles()] == [*database.profiles()]


def test_an_error_while_editing_changes_nothing(folder: Path) -> None:
    before = folder_fingerprint(folder)
    with pytest.raises(RuntimeError), edited(folder) as database:
        raise RuntimeError(database.remove("Q881"))
    assert folder_fingerprint(folder) == before


@pytest.mark.parametrize("dies_at", [0, 1, 2])
def test_a_writer_that_dies_leaves_the_old_or_the_new_database(
    folder: Path, monkeypatch: pytest.MonkeyPatch, dies_at: int
) -> None:
    database = EntityDatabase.load(folder)
    old = [*database.profiles()]
    database.remove("Q881")
    rename = os.rename
    renamed: list[Path] = []

    def rename_or_die(source: Path, target: Path) -> None:
        if len(renamed) == dies_at:
            raise KeyboardInterrupt
        renamed.append(target)
        rename(source, target)

    monkeypatch.setattr(os, "rename", rename_or_die)
    # Saving renames twice, so the third case is not interrupted.
    if dies_at < 2:
        with pytest.raises(KeyboardInterrupt):
            database.save(folder)
        assert [*EntityDatabase.load(folder).profiles()] == old
    monkeypatch.undo()
    database.save(folder)
    assert [*EntityDatabase.load(folder).profiles()] == [*database.profiles()]
    assert {each.name for each in folder.parent.iterdir()} == {"db", "p.jsonl"}


def test_a_folder_with_other_files_is_not_replaced(folder: Path, database: EntityDatabase) -> None:
    (folder / "prep").mkdir()
    (folder / "prep" / "vectors.npy").write_bytes(b"much work")
    with pytest.raises(DataError, match=r"also has the file prep/vectors\.npy, which would be lost"):
        database.save(folder)
    assert (folder / "prep" / "vectors.npy").read_bytes() == b"much work"


# ---- databases made by other tools


def made(folder: Path, **files: Any) -> Path:
    """A database with the required files and others; in names, __ is / and _json is .json."""
    content = {
        "entity_mappings__alias2qids": {"x": [["Q1", 1.0], ["Q2", 3.0]]},
        "entity_mappings__qid2title": {"Q1": "One", "Q2": "Two"},
    }
    for name, value in (content | files).items():
        path = folder / name.replace("__", "/").replace("_json", ".json").replace("_txt", ".txt")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(value if isinstance(value, str) else json.dumps(value))
    return folder


def test_files_without_a_suffix_are_read_and_candidates_sorted(tmp_path: Path) -> None:
    database = EntityDatabase.load(made(tmp_path / "db"))
    assert database.candidates("x") == [("Q2", 3.0), ("Q1", 1.0)]
    assert (database.title("Q1"), database.contents.limits) == ("One", Limits())


def test_types_by_number_and_pairs_of_entities_are_read(tmp_path: Path) -> None:
    folder = made(
        tmp_path / "db",
        type_mappings__wiki__type_vocab_json={"country": 1, "river": 2},
        type_mappings__wiki__qid2typeids_json={"Q1": [2, 1], "Q2": []},
        kg_mappings__kg_adj_txt="Q1\tQ2\nQ2\tQ1\nQ2\tQ9\n",
    )
    database = EntityDatabase.load(folder)
    assert database.types("Q1") == {"wiki": ["river", "country"]}
    assert database.types("Q2") == {}
    assert database.relations("Q2") == [("related to", "Q1"), ("related to", "Q9")]


def test_the_limits_of_the_files_are_applied(tmp_path: Path) -> None:
    folder = made(
        tmp_path / "db",
        entity_mappings__config_json={"max_candidates": 1},
        type_mappings__wiki__qid2typenames_json={"Q1": ["a", "b", "c"]},
        type_mappings__wiki__config_json={"max_types": 2},
        kg_mappings__qid2relations_json={"Q1": {"r": ["Q2", "Q3"], "s": ["Q4"]}},
        kg_mappings__config_json={"max_connections": 2},
    )
    database = EntityDatabase.load(folder)
    assert database.candidates("x") == [("Q2", 3.0)]
    assert database.types("Q1") == {"wiki": ["a", "b"]}
    assert database.relations("Q1") == [("r", "Q2"), ("r", "Q3")]


@pytest.mark.parametrize(
    "files, problem",
    [
        (
            {"entity_mappings__alias2qids": {"y": [["Q1"]]}},
            r"entity_mappings/alias2qids: 'y' is \[\[\"Q1\"\]\], expected \[\[entity id, score\]",
        ),
        ({"entity_mappings__alias2qids": {"y": [["Q1", True]]}}, "'y' is"),
        ({"entity_mappings__alias2qids": {"y": [["Q7", 1]]}}, "candidate Q7 of 'y' has no title"),
        ({"entity_mappings__qid2title": {"Q1": 3}}, "entity_mappings/qid2title: 'Q1' is 3, expected a text"),
        ({"entity_mappings__qid2title": "{"}, "entity_mappings/qid2title is not JSON"),
        ({"entity_mappings__qid2title": "[" * 100_000}, "entity_mappings/qid2title is not JSON"),
        ({"entity_mappings__qid2title": "[]"}, "qid2title holds a list, expected an object"),
        ({"entity_mappings__qid2desc_json": {"Q1": None}}, "qid2desc.json: 'Q1' is null"),
        ({"entity_mappings__config_json": {"max_candidates": 0}}, "config.json: max_candidates is 0"),
        ({"type_mappings__wiki__other_json": {}}, "type_mappings/wiki has no qid2typeids.json"),
        ({"type_mappings__wiki__qid2typenames_json": {"Q1": "a"}}, "qid2typenames.json: 'Q1' is \"a\""),
        (
            {
                "type_mappings__wiki__type_vocab_json": {"a": 1},
                "type_mappings__wiki__qid2typeids_json": {"Q1": [2]},
            },
            "qid2typeids.json: 'Q1' is .2., expected a list of numbers of type_vocab.json",
        ),
        ({"kg_mappings__qid2relations_json": {"Q1": ["Q2"]}}, "qid2relations.json: 'Q1' is"),
        ({"kg_mappings__kg_adj_txt": "Q1\tQ2\nQ1 Q2\n"}, "kg_adj.txt:2: 'Q1 Q2', expected two entity ids"),
    ],
)
def test_a_fault_is_reported_with_file_and_key(tmp_path: Path, files: dict[str, Any], problem: str) -> None:
    with pytest.raises(DataError, match=problem):
        EntityDatabase.load(made(tmp_path / "db", **files))


def test_a_missing_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="db is not an entity database: it has no folder entity_mappings"):
        EntityDatabase.load(tmp_path / "db")
    (tmp_path / "file").touch()
    with pytest.raises(DataError, match="is not an entity database"):
        EntityDatabase.load(tmp_path / "file" / "db")
    folder = made(tmp_path / "db")
    (folder / "entity_mappings" / "qid2title").unlink()
    with pytest.raises(DataError, match=r"entity_mappings has no qid2title\.json"):
        EntityDatabase.load(folder)
    (folder / "entity_mappings" / "qid2title").mkdir()
    with pytest.raises(DataError, match=r"qid2title is a folder \(a trie of Bootleg 1\.1\)"):
        EntityDatabase.load(folder)
