"""stk entities: databases, splits, spans and slices from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.slurm.support.user import User
from tests.toolkit.workloads.entity_disambiguation.data.entities.files import PROFILES, record, write
from toolkit.workloads.entity_disambiguation.commands.entities_options import _ACTIONS


@pytest.fixture
def db(user: User) -> Path:
    write(user.root / "profiles.jsonl", PROFILES)
    assert user.stk("entities", "import", "profiles.jsonl", "db").code == 0
    return user.root / "db"


def test_a_database_is_imported_and_shown(user: User, db: Path) -> None:
    told = user.stk("entities", "show", "db").out
    assert told == "db: 3 entities, 4 aliases, 4 relations, types: wiki\n"
    alias = user.stk("entities", "show", "db", "Vietnam").out.splitlines()
    assert [line.split() for line in alias] == [
        ["entity", "id", "score", "title", "description"],
        ["Q881", "5", "Vietnam"],
        ["Q180573", "3", "South", "Vietnam"],
    ]
    entity = user.stk("entities", "show", "db", "Q180573").out.splitlines()
    assert entity[0] == "Q180573  South Vietnam"
    assert "  replaced by: Q881  Vietnam" in entity


def test_updating_with_the_output_of_show_changes_nothing_of_a_database_with_aliases_as_written(
    user: User,
) -> None:
    write(user.root / "profiles.jsonl", PROFILES)
    assert user.stk("entities", "import", "profiles.jsonl", "db", "--as-written").code == 0
    shown = user.stk("entities", "show", "db", "Q1008", "--json").out
    assert "Côte d'Ivoire" in shown
    profile = json.loads(shown)
    profile["mentions"].append(["Éburnie", 1])
    write(user.root / "edited.jsonl", [profile])
    assert user.stk("entities", "update", "db", "edited.jsonl").code == 0
    changed = json.loads(user.stk("entities", "show", "db", "Q1008", "--json").out)
    profile["mentions"][-1] = ["eburnie", 1]
    assert changed == profile


def test_entities_are_added_removed_and_exported(user: User, db: Path) -> None:
    write(user.root / "more.jsonl", [{"entity_id": "Q5", "mentions": [["five", 1]]}])
    assert "which has 4" in user.stk("entities", "add", "db", "more.jsonl").out
    assert user.stk("entities", "add", "db", "more.jsonl").code == 2
    assert "which has 2" in user.stk("entities", "remove", "db", "Q5", "Q881").out
    assert user.stk("entities", "export", "db", "out.jsonl").code == 0
    exported = [json.loads(line)["entity_id"] for line in (user.root / "out.jsonl").read_text().splitlines()]
    assert exported == ["Q1008", "Q180573"]


def test_sentences_are_divided_into_splits(user: User) -> None:
    write(user.root / "all.jsonl", [record(sent_idx_unq=n, parent_qid=f"Q{n}") for n in range(100)])
    answer = json.loads(user.stk("entities", "split", "all.jsonl", "data", "--json").out)
    assert sum(answer["sentences"].values()) == 100
    assert {each.name for each in (user.root / "data").iterdir()} >= {
        "train.jsonl",
        "dev.jsonl",
        "test.jsonl",
    }


def test_slices_are_shown_and_written(user: User, db: Path) -> None:
    write(user.root / "train.jsonl", [record(sent_idx_unq=n) for n in range(3)])
    write(user.root / "dev.jsonl", [record(gold=[True, True], qids=["Q1008", "Q180573"])])
    common = ("entities", "slices", "dev.jsonl", "db", "--train", "train.jsonl", "--torso-above", "1")
    rows = {row["slice"]: row for row in json.loads(user.stk(*common, "--json").out)}
    assert rows["final_loss"]["mentions"] == 2
    assert (rows["unif_TO"]["mentions"], rows["unif_TS"]["mentions"]) == (1, 1)
    assert (rows["unif_NS_TS"]["chance"], rows["unif_NS_TS"]["popularity"]) == (0.5, 0.0)
    shown = user.stk(*common, "--output", "sliced.jsonl").out.splitlines()
    assert shown[0].split() == ["slice", "mentions", "gold", "outside", "candidates", "chance", "popularity"]
    assert shown[-1] == "wrote sliced.jsonl: 1 sentences"
    slices = json.loads((user.root / "sliced.jsonl").read_text())["slices"]
    assert slices["unif_TS"] == {"0": 0.0, "1": 1.0}


def test_weak_labels_of_training_are_counted_by_default(user: User, db: Path) -> None:
    write(user.root / "train.jsonl", [record(sent_idx_unq=n) for n in range(3)])
    write(user.root / "dev.jsonl", [record(gold=[True, True])])
    common = ("entities", "slices", "dev.jsonl", "db", "--train", "train.jsonl", "--json")

    def unseen(*options: str) -> int:
        rows = {row["slice"]: row for row in json.loads(user.stk(*common, *options).out)}
        return int(rows["unif_TS"]["mentions"])

    assert (unseen(), unseen("--no-weak")) == (0, 1)


@pytest.mark.parametrize(
    "arguments, problem",
    [
        (("split", "all.jsonl", "data", "--split", "60"), "split is 60"),
        (("split", "none.jsonl", "data"), "none.jsonl cannot be read"),
        (("import", "none.jsonl", "new"), "none.jsonl cannot be read"),
        (("import", "faulty.jsonl", "none.db"), "faulty.jsonl:4: mentions is a number"),
        (("import", "profiles.jsonl", "new", "--max-types", "0"), "--max-types is 0"),
        (("import", "profiles.jsonl", "db"), "db exists already"),
        (("show", "none"), "none is not an entity database"),
        (("show", "db", "nowhere"), "db has neither an entity nor an alias 'nowhere'"),
        (("add", "none", "profiles.jsonl"), "none is not an entity database"),
        (
            ("slices", "all.jsonl", "db", "--train", "all.jsonl", "--head-above", "3"),
            "--torso-above is 10, --head-above 3",
        ),
        (("export", "db", "none/out.jsonl"), "No such file or directory"),
    ],
)
def test_faults_end_with_an_error(user: User, db: Path, arguments: tuple[str, ...], problem: str) -> None:
    write(user.root / "all.jsonl", [record()])
    write(user.root / "faulty.jsonl", [*PROFILES, {"entity_id": "Q1", "mentions": 5}])
    answer = user.stk("entities", *arguments)
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.startswith("error: ")
    assert problem in answer.err
    assert not [each for each in user.root.iterdir() if each.name.endswith(".tmp") or "none" in each.name]


@pytest.mark.parametrize("action", sorted(_ACTIONS))
def test_every_action_has_help(user: User, action: str) -> None:
    answer = user.stk("entities", action, "--help")
    assert answer.code == 0
    assert f"usage: stk entities {action}" in answer.out
