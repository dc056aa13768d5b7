"""Run folder -> numbers -> blocks -> terminal, page, Markdown, CSV. Writes below a run's report/ only.

Its names are imported late, and matplotlib only when a plot is drawn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolkit.system.late_names import late_names

if TYPE_CHECKING:
    from toolkit.report.advice import Advice
    from toolkit.report.comparison.document import comparison_document, write_comparison
    from toolkit.report.comparison.reading import Compared, compare
    from toolkit.report.model import RunSummary, to_json
    from toolkit.report.rendering.terminal import show
    from toolkit.report.rendering.writing import report_json, write_report
    from toolkit.report.run.document import run_document
    from toolkit.report.run.summary import summarize

__all__ = [
    "Advice",
    "Compared",
    "RunSummary",
    "compare",
    "comparison_document",
    "report_json",
    "run_document",
    "show",
    "summarize",
    "to_json",
    "write_comparison",
    "write_report",
]

__getattr__ = late_names(
    __name__,
    {
        "Advice": "advice",
        "Compared": "comparison.reading",
        "RunSummary": "model",
        "compare": "comparison.reading",
        "comparison_document": "comparison.document",
        "report_json": "rendering.writing",
        "run_document": "run.document",
        "show": "rendering.terminal",
        "summarize": "run.summary",
        "to_json": "model",
        "write_comparison": "comparison.document",
        "write_report": "rendering.writing",
    },
)
