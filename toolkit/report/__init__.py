"""Run folder -> numbers -> tables, plots, HTML. Reads files of a run folder, writes below its report/.

matplotlib is imported only when a plot is drawn.
"""

from toolkit.report.html import write_comparison, write_report
from toolkit.report.summary import RunSummary, summarize, to_json
from toolkit.report.tables import render

__all__ = ["RunSummary", "render", "summarize", "to_json", "write_comparison", "write_report"]
