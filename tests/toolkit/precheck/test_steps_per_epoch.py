"""The number of steps of a run, looked up in data that was prepared before."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.patience import PATIENCE_S
from tests.toolkit.data.sources.test_file_digests import YOUNG, aged
from tests.toolkit.support.tiny import of_tokens, prepared, tiny
from toolkit.config import Experiment, to_yaml
from toolkit.data.order.batches import epoch_steps
from toolkit.data.prepared import lookup
from toolkit.data.prepared.lookup import check_permitted, find_prepared_set
from toolkit.data.sources.file_digests import memory_of
from toolkit.errors import DataError
from toolkit.precheck.check_inputs import check_inputs
from toolkit.precheck.steps_per_epoch import steps_per_epoch
from toolkit.task import task_class

Make = Callable[..., Experiment]


@pytest.fixture
def make() -> Make:
    """Makes a small experiment with its data in a folder."""
    return tiny


@pytest.mark.parametrize("overrides", [(), of_tokens(2000, None)], ids=["samples", "tokens"])
def test_the_steps_of_prepared_data_equal_those_of_training(
    tmp_path: Path, make: Make, overrides: tuple[str, ...]
) -> None:
    experiment = make(tmp_path, "train.epochs=3", *overrides)
    assert steps_per_epoch(experiment) is None
    task = task_class(prepared(experiment))(experiment)
    assert steps_per_epoch(experiment) == epoch_steps(experiment.train, task.splits["train"].lengths)
    assert find_prepared_set(experiment.data) == task.prepared


def test_large_sources_without_a_cached_digest_are_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    experiment = tiny(tmp_path)
    for split in ("train", "validation", "test"):
        aged(tmp_path / f"{split}.tsv")
    prepared(experiment)
    monkeypatch.setattr(lookup, "_FEW_BYTES", 10)
    assert steps_per_epoch(experiment) == 8
    for note in (memory_of(experiment.data) / ".digests").iterdir():
        note.unlink()
    assert steps_per_epoch(experiment) is None


def test_looking_up_the_steps_writes_nothing(tmp_path: Path) -> None:
    experiment = tiny(tmp_path)
    for split in ("train", "validation", "test"):
        aged(tmp_path / f"{split}.tsv", YOUNG)
    prepared(experiment)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    assert steps_per_epoch(experiment) == 8
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before


def test_the_steps_of_a_changed_source_are_unknown(tmp_path: Path) -> None:
    experiment = prepared(tiny(tmp_path))
    with open(tmp_path / "train.tsv", "a") as stream:
        stream.write("a warm film\tgood\n")
    assert steps_per_epoch(experiment) is None


def test_a_sample_over_the_token_budget_is_refused_once_the_data_is_prepared(tmp_path: Path) -> None:
    """The longest text has more than ten words."""
    experiment = tiny(tmp_path, *of_tokens(10, None))
    check_inputs(experiment)
    prepared(experiment)
    assert steps_per_epoch(experiment) is None
    with pytest.raises(DataError, match=r"train\.batch_max_length"):
        check_inputs(experiment)


@pytest.mark.parametrize("damage", ["{", "[]", ""])
def test_the_steps_are_unknown_if_the_manifest_is_damaged(tmp_path: Path, damage: str) -> None:
    experiment = prepared(tiny(tmp_path))
    path = find_prepared_set(experiment.data)
    (path / "meta.json").write_text(damage)
    assert steps_per_epoch(experiment) is None


def test_looking_up_the_steps_imports_nothing_slow(tmp_path: Path, make: Make) -> None:
    experiment = prepared(make(tmp_path))
    (tmp_path / "resolved.yaml").write_text(to_yaml(experiment))
    code = (
        "import sys; from pathlib import Path; from toolkit.config import load_resolved; "
        "from toolkit.precheck.steps_per_epoch import steps_per_epoch; "
        f"found = steps_per_epoch(load_resolved(Path({str(tmp_path / 'resolved.yaml')!r}))); "
        "sys.exit(0 if found and not {'torch', 'numpy', 'transformers'} & set(sys.modules) else 1)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=PATIENCE_S)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has files of another user")
@pytest.mark.parametrize("private", ["", "set"])
def test_prepared_data_that_may_not_be_read_are_warned_of_and_refused_by_the_run(
    shared: Path, private: str, request: pytest.FixtureRequest
) -> None:
    experiment = tiny(shared)
    prepared(experiment)
    found = find_prepared_set(experiment.data)
    assert found is not None
    (found if private else found.parent).chmod(0o700)
    request.getfixturevalue("ordinary_user")
    for read in (prepared, lambda of: check_permitted(of.data)):
        with pytest.raises(DataError, match=r"may not be read by this user.* set data\.prepared_dir"):
            read(experiment)
    check_inputs(experiment)
