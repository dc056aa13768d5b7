"""Pictures for docs/runs/sweeps.md: the difference that a changed file makes, and a report.

Nothing is trained: a formula with its best score at a learning rate of 0.002 makes up the results.
"""

from __future__ import annotations

import io
import json
import math
import random
import tempfile
from pathlib import Path

from drawing import save, terminal_page
from rich.console import Console, RenderableType

from slurm.sweeps.overview import overview
from slurm.sweeps.request import Wanted, describe, want
from slurm.sweeps.table import preview
from toolkit.run.create_run import create_run
from toolkit.sweeps.folder import write_record
from toolkit.sweeps.results.collect import read_results
from toolkit.sweeps.results.report import write_report

_EXPERIMENT = """\
name: reviews
task: {kind: text_classification}
model: {kind: docnn}
data: {path: reviews.tsv}
evaluation: {metric: "accuracy:max"}
sweep:
"""
_GRID = "  name: grid\n  parameters: {optimizer.lr: [0.0003, 0.001, 0.003], model.dropout: [0.2, %s]}\n"
_RANDOM = """\
  name: reviews
  method: random
  samples: 24
  seeds: [1, 2]
  parameters:
    optimizer.lr: {loguniform: [1e-4, 1e-1]}
    model.dropout: {uniform: [0, 0.6]}
    model.filters: {randint: [20, 200]}
    model.kernels: [[2], [2, 3], [2, 3, 4]]
"""
_COLUMNS = 92


def make(pictures: Path) -> None:
    """Store sweep_difference.png and sweep_report.png."""
    with tempfile.TemporaryDirectory() as folder:
        root, config = Path(folder), Path(folder, "reviews.yaml")
        config.write_text(_EXPERIMENT + _GRID % 0.4)
        _finish(_wanted(config, root))
        config.write_text(_EXPERIMENT + _GRID % 0.5)
        changed = preview(_wanted(config, root))
        _save("stk sweep reviews.yaml --dry-run", changed, pictures / "terminal" / "sweep_difference.png")
        config.write_text(_EXPERIMENT + _RANDOM)
        wanted = _wanted(config, root)
        _finish(wanted)
        found = overview(wanted.folder, wanted.record)
        results = read_results(wanted.folder, wanted.record, found.states)
        page = write_report(wanted.folder, results).read_text()
        save(page, pictures / "reports" / "sweep_report.png", width=1120, height=1150)


def _wanted(config: Path, root: Path) -> Wanted:
    return want(config, describe(config, []), root)


def _finish(wanted: Wanted) -> None:
    """Write the record of the sweep, and results of its runs."""
    write_record(wanted.folder, wanted.record)
    noise = random.Random(0)
    for each in wanted.combinations:
        run = create_run(each.experiment, wanted.folder.experiments, shared_code=wanted.folder.path)
        lr, dropout = (float(each.values[key]) for key in ("optimizer.lr", "model.dropout"))
        filters = int(each.values.get("model.filters", 100))
        accuracy = 0.87 - 0.05 * (math.log10(lr) + 2.7) ** 2 - 0.2 * (dropout - 0.3) ** 2
        accuracy += 0.01 * math.log(filters / 100) + noise.gauss(0, 0.006)
        scores = {"validation": {"accuracy": max(0.5, accuracy), "loss": 1 - accuracy}}
        result = {"state": "finished", "step": 600, "metrics": scores, "seconds": 31.0 + filters / 9}
        run.result.write_text(json.dumps(result))


def _save(command: str, shown: RenderableType, target: Path) -> None:
    console = Console(record=True, file=io.StringIO(), width=_COLUMNS, force_terminal=True)
    console.print(f"[bold green]$[/] {command}", highlight=False)
    console.print(shown)
    save(terminal_page(console), target, width=1000, height=800)
