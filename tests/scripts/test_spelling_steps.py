"""The spelling study says how many steps its runs have before anything starts."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.readme import ROOT
from tests.scripts.spelling_study import SCRIPTS, Study
from tests.scripts.spelling_table import SOURCES, TABLE, ablated
from tests.toolkit.support.tiny import of_tokens
from tests.toolkit.workloads.spelling.spelling_files import tiny_words
from toolkit.data.order.batches import epoch_steps
from toolkit.workloads.spelling.data.samples.prepared import prepare

#: Columns of the table of steps.
STEPS = ("run", "tokens", "draws", "each", "epochs", "steps", "warm_up", "evaluations")


def table(output: str) -> dict[str, dict[str, int]]:
    """The rows of a table of steps by their run."""
    found = {}
    for line in output.splitlines():
        run, *cells = line.replace("~", "").replace(",", "").split()
        if len(cells) == len(STEPS) - 1 and all(map(str.isdecimal, cells)):
            found[run] = dict(zip(STEPS[1:], map(int, cells), strict=True))
    return found


@pytest.mark.slow
def test_steps_of_all_runs_are_shown_without_starting_anything(study: Study) -> None:
    # Not even the texts are there.
    done = study.run(
        "reproduce_spelling.sh", STUDY_STEPS="1", STK_REPAIR_RUN="", STK_DATA_DIR=str(study.home / "none")
    )
    assert (done.returncode, study.calls()) == (0, []), done.stderr
    assert not (study.home / "none").exists()
    rows = table(done.stdout)
    assert set(rows) == {name for row in TABLE for name in row.names} | set(SOURCES)
    page = (ROOT / "toolkit/workloads/spelling/docs/study.md").read_text(encoding="utf-8")
    for row in rows.values():
        assert f"{row['steps']:,}" in page
        assert row["steps"] == row["each"] * row["epochs"] >= 3000
        assert row["warm_up"] == pytest.approx(row["steps"] / 20, abs=1)
        assert row["evaluations"] in (10, 20)


def test_script_shows_its_steps_and_starts_the_runs(study: Study) -> None:
    done = study.run("sed_words", "train.epochs=3", APPROACH="gnn")
    rows = table(done.stdout)
    assert list(rows) == list(ablated("sed_words_gnn"))
    for row in rows.values():
        # 985,796 tokens that were counted, 20 times.
        assert (row["tokens"], row["draws"], row["each"]) == (98304, 20, 201)
        assert (row["epochs"], row["steps"], row["evaluations"]) == (3, 603, 3)
    assert study.calls()


def test_steps_are_counted_on_prepared_data_if_present(tmp_path: Path) -> None:
    experiment = tiny_words(tmp_path, *of_tokens(400, 4), "train.epochs=3", "data.noise_draws=2")
    prepare(experiment.data)
    lengths = prepare(experiment.data).split("train").lengths
    done = subprocess.run(
        [
            *(sys.executable, SCRIPTS / "spelling_steps", tmp_path / "tiny_words.yaml"),
            *of_tokens(400, 4), "train.epochs=3", "data.noise_draws=2",
        ],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "~" not in done.stdout
    row = table(done.stdout)["tiny-words"]
    assert row["each"] == epoch_steps(experiment.train, lengths)
    assert (row["draws"], row["steps"]) == (2, 3 * row["each"])
