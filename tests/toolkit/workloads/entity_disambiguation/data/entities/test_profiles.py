"""Profiles of entities are read, checked and written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.toolkit.workloads.entity_disambiguation.data.entities.files import PROFILES, write
from toolkit.errors import DataError
from toolkit.workloads.entity_disambiguation.data.entities.contents import Limits
from toolkit.workloads.entity_disambiguation.data.entities.database import import_profiles
from toolkit.workloads.entity_disambiguation.data.entities.jsonlines import write_lines
from toolkit.workloads.entity_disambiguation.data.entities.profiles import read_profiles


def test_a_profile_is_read_with_normalised_aliases(tmp_path: Path) -> None:
    (_, first), (line, second), _ = read_profiles(write(tmp_path / "p.jsonl", PROFILES))
    assert first.mentions == (("ivory coast", 9), ("cote divoire", 8.5))
    assert first.types == {"wiki": ("sovereign state", "country")}
    assert first.relations == (("borders", "Q912"), ("capital", "Q3768"), ("borders", "Q1020"))
    assert (line.number, second.description, second.types, second.relations) == (2, "", {}, ())


def test_aliases_can_be_kept_as_written(tmp_path: Path) -> None:
    (_, first), *_ = read_profiles(write(tmp_path / "p.jsonl", PROFILES), as_written=True)
    assert first.mentions == (("Ivory Coast", 9), ("Côte d'Ivoire", 8.5))


def test_the_higher_score_counts_for_aliases_that_become_equal(tmp_path: Path) -> None:
    profile = {"entity_id": "Q30", "mentions": [["US", 3], ["U.S.", 7], ["us", 5]]}
    ((_, read),) = read_profiles(write(tmp_path / "p.jsonl", [profile]))
    assert read.mentions == (("us", 7),)
    assert read.title == "Q30"


@pytest.mark.parametrize(
    "changes, problem",
    [
        ({"entity_id": None}, "entity_id is null"),
        ({"entity_id": ""}, "entity_id is empty"),
        ({"title": 5}, "title is a number"),
        ({"mentions": {"vietnam": 1}}, "mentions is an object, expected a list"),
        ({"mentions": [["vietnam"]]}, r'mentions\[0\] is \["vietnam"\], expected \[alias, score\]'),
        ({"mentions": [["vietnam", "5"]]}, r"expected \[alias, score\]"),
        ({"mentions": [["vietnam", float("nan")]]}, "expected a finite number"),
        ({"mentions": [["?!", 5]]}, "nothing is left of the alias '\\?!'"),
        ({"types": {"wiki": "country"}}, 'types.wiki is "country", expected a list of names'),
        ({"types": {"../wiki": []}}, "cannot name a type system"),
        ({"relations": [{"relation": "borders"}]}, r"relations\[0\].object is null, expected a text"),
        ({"relations": [{"relation": "P47", "object": "Q1"}]}, r"P47, the number of a property.*--pids keep"),
        ({"titel": "Vietnam"}, "unknown key titel; a profile has entity_id, title"),
    ],
)
def test_a_faulty_profile_is_reported_with_its_line(
    tmp_path: Path, changes: dict[str, Any], problem: str
) -> None:
    faulty = {"entity_id": "Q881", "mentions": [["vietnam", 5]]} | changes
    path = write(tmp_path / "p.jsonl", [PROFILES[0], faulty])
    with pytest.raises(DataError, match=f"^{path}:2: .*{problem}"):
        list(read_profiles(path))


def test_relations_named_by_property_ids_can_be_kept_or_dropped(tmp_path: Path) -> None:
    relations = [{"relation": "P47", "object": "Q1"}, {"relation": "capital", "object": "Q2"}]
    path = write(tmp_path / "p.jsonl", [{"entity_id": "Q5", "mentions": [], "relations": relations}])
    ((_, kept),) = read_profiles(path, pids="keep")
    ((_, dropped),) = read_profiles(path, pids="drop")
    assert kept.relations == (("P47", "Q1"), ("capital", "Q2"))
    assert dropped.relations == (("capital", "Q2"),)


def test_two_lines_of_one_entity_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "p.jsonl", [*PROFILES, PROFILES[1]])
    with pytest.raises(DataError, match=f"^{path}:4: entity_id Q881 is also that of another line"):
        import_profiles(path)


def test_a_database_keeps_no_more_than_its_limits(tmp_path: Path) -> None:
    profiles = [
        {
            "entity_id": f"Q{number}",
            "mentions": [["x", number % 4]],
            "types": {"wiki": ["a", "b", "c"]},
            "relations": [{"relation": "r", "object": f"Q{other}"} for other in range(5)],
        }
        for number in range(9)
    ]
    limits = Limits(max_candidates=3, max_types=2, max_connections=4)
    database = import_profiles(write(tmp_path / "p.jsonl", profiles), limits)
    assert database.candidates("x") == [("Q7", 3), ("Q3", 3), ("Q6", 2)]
    assert database.types("Q0") == {"wiki": ["a", "b"]}
    assert len(database.relations("Q0")) == 4


def test_an_exported_database_is_imported_unchanged(tmp_path: Path) -> None:
    database = import_profiles(write(tmp_path / "p.jsonl", PROFILES))
    write_lines(tmp_path / "out.jsonl", (profile.to_json() for profile in database.profiles()))
    assert [*import_profiles(tmp_path / "out.jsonl").profiles()] == [*database.profiles()]
