"""`stk prepare` of tables: the prepared set and the skipped rows."""

from __future__ import annotations

import json

from tests.slurm.commands.experiments.test_prepare import prepare_without_torch
from tests.slurm.support.user import User


def test_the_prepared_set_is_described_in_a_line(user: User) -> None:
    films = "".join(f"a film {number}\t{'bad' if number % 2 else 'good'}\n" for number in range(50))
    (user.root / "reviews.tsv").write_text("text\tlabel\n" + films + "a film\tgodo\n \tgood\n")
    first = user.call("prepare", user.config, "data.labels=[bad,good]")
    (path,) = (user.root / "prepared").glob("reviews-*")
    assert (first.code, first.err) == (0, "")
    assert first.out.splitlines() == [
        f"prepared: train 40, validation 5, test 5; 2 labels, 44 tokens; {path}",
        f"left out 1 row with unknown labels: 'godo' 1; one is {user.root}/reviews.tsv:52",
        f"left out 1 row without a text, from {user.root}/reviews.tsv:53 on",
    ]
    second = user.call("prepare", user.config, "data.labels=[bad,good]")
    assert second.out.splitlines()[0].startswith("was prepared before: train 40,")
    assert second.out.splitlines()[1:] == first.out.splitlines()[1:]


def test_the_numbers_of_fragments_and_of_texts_are_shown(user: User) -> None:
    answer = user.call("prepare", user.config, "data.max_tokens=2", "data.fold=word", "--json")
    found = json.loads(answer.out)
    assert found["samples"] == sum(found["splits"].values()) > found["texts"] == 120
    assert found["skipped"]["unknown_labels"]["rows"] == 0
    told = user.call("prepare", user.config, "data.max_tokens=2", "data.fold=word").out
    assert " from 120 texts; 2 labels, " in told


def test_a_table_is_prepared_without_torch(user: User) -> None:
    """The command then answers fast."""
    assert prepare_without_torch(user.config)[-1] == "0 []"
