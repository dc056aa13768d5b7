"""The report of a run as Markdown, for an issue, a README or a mail."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from toolkit.report import facts, markdown
from toolkit.report.advice import Advice, advice_sheet
from toolkit.report.sheets import sheet
from toolkit.report.spent.times import time_sheet
from toolkit.report.spent.usage import usage_sheet
from toolkit.report.values import RunSummary


def run_markdown(summary: RunSummary, advice: Sequence[Advice], pictures: Collection[str]) -> str:
    """Return facts, scores, what was spent, advice and pictures.

    pictures  names of the PNG beside it, without their ending
    """
    parts = [markdown.heading(summary.run_id, 1), markdown.facts(facts.headline(summary))]
    if summary.failure:
        said = f"{summary.failure.error}: {summary.failure.message}"
        parts += [markdown.heading("Failure"), f"{markdown.escaped(said)}\n"]
    tables = []
    if summary.scores:
        head, *rows = facts.score_rows(summary)
        tables.append(sheet("Scores", head, rows))
    if summary.starts:
        tables.append(time_sheet(summary))
    if summary.usage:
        tables.append(usage_sheet(summary))
    if advice:
        tables.append(advice_sheet(advice))
    parts += [markdown.sheet(table) for table in tables]
    parts += [markdown.picture(f"{name}.png", name.replace("_", " ")) for name in pictures]
    return markdown.document(parts)
