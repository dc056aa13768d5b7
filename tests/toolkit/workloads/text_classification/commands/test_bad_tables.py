"""Faulty tables are reported before anything is started."""

from __future__ import annotations

import pytest

from tests.slurm.support.user import User, reviews
from tests.slurm.test_cli import check_bad_data

#: The content of reviews.tsv (None: it is missing), the arguments, and parts of the message.
BAD_DATA: dict[str, tuple[bytes | None, list[str], list[str]]] = {
    "missing": (None, [], ["reviews.tsv", "no such file"]),
    "only a header": (b"text\tlabel\n", [], ["reviews.tsv", "no rows"]),
    "no such column": (
        reviews().encode(), ["data.label_column=lable"], ["'lable'", "text, label", "'label'"],
    ),
    "label outside the map": (
        reviews().encode() + b"so so\tmiddling\n", ["data.labels=[good,bad]", "data.unknown_labels=refuse"],
        ["reviews.tsv:122", "'middling'", "good, bad"],
    ),
    "empty label": (
        reviews().encode() + b"so so\t\n", ["data.unknown_labels=refuse"],
        ["reviews.tsv:122", "label is empty"],
    ),
    "no header": (b"fine\tgood\n", [], ["reviews.tsv:1", "no column 'text'", "data.columns"]),
    "no tokenizer": (
        reviews().encode(), ["data.tokenizer=pretrained", "data.tokenizer_path=folder.tsv"],
        ["folder.tsv", "there is no tokenizer.json"],
    ),
    "ragged rows": (
        reviews().encode() + b"a\tb\tc\n", [],
        ["reviews.tsv:122: 3 fields, expected 2 as in the header (text, label)"],
    ),
    "no label of a weight": (
        reviews().encode(), ["task.class_weights={gut: 2}"], ["class_weights", "'gut'", "bad, good"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("command", [["run"], ["submit", "--cluster", "local"]], ids=["run", "submit"])
@pytest.mark.parametrize("case", BAD_DATA)
def test_faulty_data_are_reported_once_before_anything_is_started(
    user: User, case: str, command: list[str]
) -> None:
    check_bad_data(user, command, *BAD_DATA[case])
