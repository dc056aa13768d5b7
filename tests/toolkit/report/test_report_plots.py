from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import matplotlib
import matplotlib.image
import numpy as np
import pytest
from matplotlib.colors import to_rgb

from tests.support.registering import ROOT
from tests.toolkit.report.drawn import comparison_plots, run_plots
from tests.toolkit.report.report_folders import with_seed, write_attempts, write_finished, write_metrics
from toolkit.files import append_json_line
from toolkit.report.plotting.themes import DARK, LIGHT, Theme
from toolkit.report.run.summary import summarize
from toolkit.run.run_dir import RunDir


def pixels(png: bytes) -> Any:
    """Decode a PNG to height x width x 3 values between 0 and 1."""
    return matplotlib.image.imread(io.BytesIO(png))[:, :, :3]


def count_of(image: Any, colour: str) -> int:
    """Count the pixels that have a colour, but for rounding."""
    return int((np.abs(image - np.array(to_rgb(colour))).max(axis=2) < 0.02).sum())


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_the_loss_plot_shows_train_validation_test_and_the_best(finished_run: RunDir, theme: Theme) -> None:
    image = pixels(run_plots(summarize(finished_run))["loss.png"](theme))
    assert image[2, 2] == pytest.approx(to_rgb(theme.background), abs=0.01)
    for drawn in (0, 1, 2, 4):
        assert count_of(image, theme.series[drawn]) > 100, theme.series[drawn]
    assert count_of(image, theme.series[3]) == 0


def test_a_run_without_restart_and_best_has_no_marks(new_run: RunDir) -> None:
    append_json_line(new_run.metrics, {"step": 10, "split": "train", "loss": 0.5})
    append_json_line(new_run.metrics, {"step": 20, "split": "train", "loss": 0.4})
    image = pixels(run_plots(summarize(new_run))["loss.png"](LIGHT))
    assert count_of(image, LIGHT.series[0]) > 100
    assert count_of(image, LIGHT.series[1]) == count_of(image, LIGHT.series[4]) == 0


def test_a_restart_changes_the_plot(new_run: RunDir) -> None:
    write_metrics(new_run)
    before = run_plots(summarize(new_run))["loss.png"](LIGHT)
    write_attempts(new_run)
    assert run_plots(summarize(new_run))["loss.png"](LIGHT) != before


def test_a_run_without_data_or_with_nan_only_has_no_plots(new_run: RunDir) -> None:
    assert run_plots(summarize(new_run)) == {}
    append_json_line(new_run.metrics, {"step": 1, "split": "train", "loss": float("nan")})
    assert run_plots(summarize(new_run)) == {}


def test_the_second_plot_shows_the_metric_that_selects_the_best(tmp_path: Path) -> None:
    run = write_finished(tmp_path / "run-0", metric="macro_f1:max")
    drawn = ["loss", "macro_f1", "learning_rate", "epochs", "timeline"]
    assert list(run_plots(summarize(run))) == [f"{name}.png" for name in drawn]


def test_drawing_is_deterministic_and_neither_takes_nor_changes_the_users_settings(
    finished_run: RunDir,
) -> None:
    draw = run_plots(summarize(finished_run))["accuracy.png"]
    usual = draw(LIGHT)
    assert draw(DARK) == draw(DARK) != usual
    # Without LaTeX, `text.usetex` would fail.
    with matplotlib.rc_context({"text.usetex": True, "lines.linewidth": 9}):
        before = dict(matplotlib.rcParams)
        assert draw(LIGHT) == usual
        assert dict(matplotlib.rcParams) == before


def test_figures_are_drawn_although_the_backend_of_a_notebook_is_not_installed(finished_run: RunDir) -> None:
    script = (
        "import sys; from pathlib import Path; from toolkit.run.run_dir import RunDir\n"
        "from tests.toolkit.report.drawn import run_plots, summarize\n"
        "from toolkit.report.plotting.themes import LIGHT\n"
        "run_plots(summarize(RunDir(Path(sys.argv[1]))))['learning_rate.png'](LIGHT)"
    )
    backend = "module://matplotlib_inline.backend_inline"
    environ = {**os.environ, "PYTHONPATH": str(ROOT), "MPLBACKEND": backend}
    subprocess.run([sys.executable, "-c", script, str(finished_run.path)], env=environ, check=True)


def test_compared_runs_are_drawn_in_different_colours(tmp_path: Path) -> None:
    runs = [with_seed(write_finished(tmp_path / f"run-{number}"), number) for number in range(9)]
    for number, run in enumerate(runs):
        line = {"step": 400, "split": "validation", "loss": 0.1 * number, "accuracy": 0.5}
        append_json_line(run.metrics, line)
    plots = comparison_plots([summarize(run) for run in runs])
    scores = ("loss", "accuracy", "macro_precision", "macro_recall", "macro_f1")
    drawn = [f"{name}{of}.png" for name in scores for of in ("", "_seeds")]
    assert list(plots) == [*drawn, "train_loss.png", "timelines.png"]
    image = pixels(plots["loss.png"](LIGHT))
    assert all(count_of(image, colour) > 50 for colour in LIGHT.series)


@pytest.mark.slow
def test_drawing_imports_neither_pyplot_nor_torch(finished_run: RunDir) -> None:
    script = (
        "import sys; from pathlib import Path; from toolkit.run.run_dir import RunDir\n"
        "from toolkit.report.rendering.writing import write_report\n"
        "light = {'matplotlib', 'numpy', 'torch', 'jinja2', 'slurm', 'submitit'} & set(sys.modules)\n"
        "write_report(RunDir(Path(sys.argv[1])))\n"
        "print(sorted(light), 'matplotlib' in sys.modules, "
        "sorted({'matplotlib.pyplot', 'torch'} & set(sys.modules)))"
    )
    answer = subprocess.run(
        [sys.executable, "-c", script, str(finished_run.path)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert answer.stdout.strip() == "[] True []"
    assert answer.stderr == ""
