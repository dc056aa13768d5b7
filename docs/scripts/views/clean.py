"""The picture of `stk clean` in docs/runs/old-runs.md, of made-up runs."""

from __future__ import annotations

import io
from pathlib import Path

from drawing import save, terminal_page
from rich.console import Console

from slurm.runs.cleaning.choosing import Item, Kept, Proposal
from slurm.runs.cleaning.table import table
from toolkit.run.run_dir import RunDir
from toolkit.system.output.amounts import size

_DAY_S = 86400.0
_RUNS = (
    ("bert_topics-5f0c11d2", 1_310_000_000, (4000, 8000), 12),
    ("docnn_reviews-0a61b7e9", 41_000_000, (1200, 2400, 3600), 9),
    ("sec_nmt-93d04c17", 803_000_000, (50_000,), 3),
)
_ASIDE = Item(
    run=RunDir(Path("old/sec_nmt-93d04c17.20260303-101500-000000")),
    kind="old", what="run that was set aside", paths=(), bytes=2_530_000_000, age_s=15 * _DAY_S,
)  # fmt: skip
_KEPT = (
    Kept(run_id="pretrain-7c2f9a01", what="checkpoint of step 20000", why="finetune-25c1bf41 begins with it"),
    Kept(run_id="sed_words-44e1d0aa", what="all", why="it is running"),
)


def make(pictures: Path) -> None:
    """Draw the preview of what would be deleted."""
    items = [
        Item(
            run=RunDir(Path(name)), kind="checkpoint", what=f"checkpoint of step {step}", paths=(),
            bytes=amount, age_s=days * _DAY_S - number * 7000,
        )
        for name, amount, steps, days in _RUNS
        for number, step in enumerate(steps)
    ]  # fmt: skip
    proposal = Proposal(items=(*items, _ASIDE), kept=_KEPT)
    console = Console(record=True, width=96, file=io.StringIO(), force_terminal=True)
    console.print("[bold]$[/] stk clean --state finished --state failed --old", highlight=False)
    console.print(table(proposal))
    total = f"{len(proposal.items)} things, {size(proposal.bytes)}"
    console.print(f"in all {total}\nDelete all of it? [y/N] ", highlight=False, markup=False)
    save(terminal_page(console), pictures / "terminal" / "clean.png", width=1000, height=600)
