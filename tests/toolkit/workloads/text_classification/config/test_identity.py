"""Run folders of text classification keep their names."""

from __future__ import annotations

from dataclasses import replace

from toolkit.config import check
from toolkit.config.identity import identity


def test_the_identity_of_an_experiment_is_the_same_on_every_machine() -> None:
    """If it changed, existing run folders would not be found; change it only with the schema."""
    found = check(
        {
            "name": "movies",
            "task": {"kind": "text_classification"},
            "model": {"kind": "docnn"},
            "data": {"path": "/data/movie_reviews.tsv"},
        }
    )
    small = replace(found, train=None, optimizer=None, lr_scheduler=None, checkpoint=None)
    assert identity(replace(small, evaluation=None, model=None, data=None)) == "2be80f39"
