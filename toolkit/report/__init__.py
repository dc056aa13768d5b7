"""Run folder -> numbers -> blocks -> terminal, page, Markdown, CSV. Writes below a run's report/ only.

Its names are imported late, and matplotlib only when a plot is drawn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolkit.system.late_names import late_names

if TYPE_CHECKING:
    from toolkit.report.advice import Advice as Advice
    from toolkit.report.comparison.document import comparison_document as comparison_document
    from toolkit.report.comparison.document import write_comparison as write_comparison
    from toolkit.report.comparison.reading import Compared as Compared
    from toolkit.report.comparison.reading import compare as compare
    from toolkit.report.model import RunSummary as RunSummary
    from toolkit.report.model import to_json as to_json
    from toolkit.report.rendering.terminal import show as show
    from toolkit.report.rendering.writing import report_json as report_json
    from toolkit.report.rendering.writing import write_report as write_report
    from toolkit.report.run.document import run_document as run_document
    from toolkit.report.run.summary import summarize as summarize

_PLACES = {
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
}

__all__ = list(_PLACES)
__getattr__ = late_names(__name__, _PLACES)
