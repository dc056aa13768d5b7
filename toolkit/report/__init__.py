"""Run folder -> numbers -> tables, plots, HTML. Reads files of a run folder, writes below its report/.

matplotlib is imported only when a plot is drawn.
"""

from toolkit.report.advice import Advice
from toolkit.report.comparison.page import write_comparison
from toolkit.report.comparison.reading import Compared, compare
from toolkit.report.html import report_json, write_report
from toolkit.report.summary import RunSummary, summarize, to_json
from toolkit.report.tables import render, render_comparison

__all__ = [
    "Advice",
    "Compared",
    "RunSummary",
    "compare",
    "render",
    "render_comparison",
    "report_json",
    "summarize",
    "to_json",
    "write_comparison",
    "write_report",
]
