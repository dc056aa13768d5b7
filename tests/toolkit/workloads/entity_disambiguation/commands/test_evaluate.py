"""`stk evaluate --entity-db` sets a key of the data section."""

from __future__ import annotations

import pytest

from slurm.commands.parser import make_parser
from tests.slurm.support.user import User
from toolkit.config import load
from toolkit.files import write_json
from toolkit.run.create_run import create_run
from toolkit.workloads.entity_disambiguation.commands.entities_options import EVALUATE


def test_option_entity_db_sets_data_entity_db(user: User) -> None:
    run = create_run(user.experiment(), user.experiments)
    write_json(run.result, {"best": {"step": 1}})
    answer = user.stk("evaluate", run.run_id, "--entity-db", "entities")
    assert answer.code == 2
    assert f'data.entity_db="{user.root / "entities"}"' in answer.err


def test_options_benchmark_and_entity_db_exclude_each_other(user: User) -> None:
    answer = user.stk("evaluate", "--benchmark", "folder", "--entity-db", "entities")
    assert answer.code == 2
    assert "--benchmark does not go with --entity-db" in answer.err


def test_a_home_folder_behind_an_equals_sign_is_that_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ada")
    (override,) = EVALUATE.overrides(make_parser(["evaluate"]).parse_args(["evaluate", "--entity-db=~/db"]))
    assert override == 'data.entity_db="/home/ada/db"'


def test_any_name_of_a_folder_is_quoted_correctly(user: User) -> None:
    name = 'it\'s "a", {b: c} # d = ü'
    words = ["evaluate", "run", "--data", "file", "--entity-db", name]
    (override,) = EVALUATE.overrides(make_parser(["evaluate"]).parse_args(words))
    config = user.write("other.yaml", user.config.read_text().replace("reviews.tsv", "a.tsv"))
    key, _, value = override.partition("=")
    assert key == "data.entity_db"
    assert load(config, [f"data.path={value}"]).data.path == str(user.root / name)
