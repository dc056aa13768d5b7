"""Run folder -> numbers -> blocks -> terminal, page, Markdown, CSV. Writes below a run's report/ only.

matplotlib is imported only when a plot is drawn.
"""

from toolkit.report.advice import Advice
from toolkit.report.comparison.document import comparison_document, write_comparison
from toolkit.report.comparison.reading import Compared, compare
from toolkit.report.rendering.terminal import show
from toolkit.report.rendering.writing import report_json, write_report
from toolkit.report.run.document import run_document
from toolkit.report.run.summary import RunSummary, summarize, to_json

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
