"""The arguments of `stk report`."""

from __future__ import annotations

from slurm.arguments.common import RUN_HELP, Parsers, command, json_option


def add(parsers: Parsers) -> None:
    """Add the command."""
    parser = command(
        parsers,
        "report",
        "results: tables, plots, HTML",
        "Of one run: tables here, with advice on what to ask for; plots, page, Markdown, CSV and JSON in\n"
        "report/ of its folder. Of several: what differs, their scores, mean and deviation over seeds, and\n"
        "what they took, side by side.",
    )
    parser.add_argument("runs", nargs="+", metavar="RUN", help=RUN_HELP)
    parser.add_argument(
        "--output",
        metavar="PLACE",
        help="where the comparison of several runs goes: FILE.html, or a folder for page, plots, Markdown, "
        "CSV and JSON",
    )
    json_option(parser)
