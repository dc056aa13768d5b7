"""Sections of the experiment that other packages declare."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from slurm.config.resources import Resources
from toolkit.config import check, load, load_resolved, to_plain, to_yaml
from toolkit.config import sections as registered
from toolkit.config.fields import option
from toolkit.config.identity import identity
from toolkit.config.schema import RunPolicy
from toolkit.config.sections import Section, with_hint
from toolkit.workload import Violation, rule

TOOLKIT = Path(__file__).parents[3] / "toolkit"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tracking:
    """Where metrics are sent."""

    project: str | None = option(None)
    every: int = option(10, minimum=1)
    shown: int | None = option(None)


@rule("tracking.project", "train.epochs")
def _project(experiment: Any) -> Iterator[Violation]:
    if experiment.tracking.project == "none":
        yield Violation(key=("tracking", "project"), problem="found none")


def _complete(section: Tracking) -> Tracking:
    return replace(section, shown=2 * section.every)


TRACKING = Section(
    name="tracking", config=Tracking, rules=(_project,), complete=_complete,
    completed_from=(("tracking", "every"),),
)  # fmt: skip


@pytest.fixture
def declare(monkeypatch):
    """Make these the sections that installed packages declare."""

    def declared(*sections: Section) -> None:
        points = [SimpleNamespace(load=lambda section=section: section) for section in sections]
        monkeypatch.setattr(registered, "registered", lambda group: points)
        registered.sections.cache_clear()

    yield declared
    monkeypatch.undo()
    registered.sections.cache_clear()


def test_a_registered_section_is_checked_completed_and_stored(tree, declare, tmp_path):
    declare(TRACKING)
    experiment: Any = check({**tree, "tracking": {"every": 3}})
    assert experiment.tracking == Tracking(every=3, shown=6)
    (tmp_path / "config.yaml").write_text(to_yaml(experiment))
    assert load_resolved(tmp_path / "config.yaml") == experiment


def test_faults_of_a_registered_section_are_reported_with_the_others(tree, declare, faults):
    declare(TRACKING)
    wrong = {"tracking": {"project": "none", "evry": 3, "every": 0}, "seed": -1}
    found = faults(check, {**tree, **wrong})
    assert {fault.key for fault in found} == {
        "seed", "tracking.every", "tracking.evry", "tracking.project",
    }  # fmt: skip
    assert "did you mean every?" in {fault.hint for fault in found}


@pytest.mark.parametrize("is_identity", [True, False])
def test_a_section_declares_whether_it_is_part_of_the_identity(tree, declare, is_identity):
    declare(replace(TRACKING, is_identity=is_identity))
    one, other = (check({**tree, "tracking": {"every": every}}) for every in (1, 2))
    assert (identity(one) != identity(other)) is is_identity


def test_a_message_ends_with_the_hint_of_the_section_that_has_the_key(declare):
    declare(TRACKING, replace(TRACKING, name="place", hints={"memory": "place.memory is the key."}))
    assert with_hint("Ask for more.", "memory") == "Ask for more. place.memory is the key."
    assert with_hint("Avoid it.", "excluded_hosts") == "Avoid it."


def test_a_section_that_cannot_be_imported_does_not_hide_the_message(declare, monkeypatch):
    declare()

    def missing(group: str) -> Any:
        raise ModuleNotFoundError(group)

    monkeypatch.setattr(registered, "registered", missing)
    assert with_hint("Ask for more.", "memory") == "Ask for more."


def test_without_a_scheduler_resources_are_kept_as_written(movies, declare):
    with_scheduler = load(movies)
    declare()
    experiment = load(movies)
    assert to_plain(experiment)["resources"] == {"tasks_per_node": 2}
    assert experiment.policy == RunPolicy()
    assert identity(experiment) == identity(with_scheduler)


def test_the_resources_section_sets_the_run_policy(tree):
    experiment = check({**tree, "resources": {"max_crashes": 7, "dependency": "afterok:1"}})
    assert experiment.policy.max_crashes == 7
    assert experiment.policy.waits_for_jobs


def test_the_training_library_reads_no_key_of_the_scheduler():
    """Its own are those of RunPolicy."""
    ours = {each.name for each in fields(RunPolicy)}
    others = "|".join(sorted({each.name for each in fields(Resources)} - ours))
    as_attribute = re.compile(rf"\bresources\.({others})\b")
    as_item = re.compile(rf'\bresources(\.get\(|\[)"({others})"')
    for path in TOOLKIT.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        if path.is_relative_to(TOOLKIT / "training") or path.is_relative_to(TOOLKIT / "workloads"):
            # Their messages for people name keys.
            text = re.sub(r'"(?:[^"\\\n]|\\.)*"', "", text)
        assert not as_attribute.search(text), path
        assert not as_item.search(text), path
