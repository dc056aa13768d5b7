"""Arguments of `stk detect` and `stk correct`."""

from __future__ import annotations

import argparse

from slurm.arguments.common import RUN_HELP, Parsers, command

_DETECT_SUMMARY = "find spelling errors with a trained model"
_DETECT = """\
Read lines from FILE or standard input; write a line for each: 0 (right) or 1 (wrong) for each of its words,
or a single one where the run was trained on whole texts (sed_sequence). Lines of any length; one of a
slow pipe is answered when it comes.

  stk detect RUN letters.txt > labels.txt
  echo "a stoen bridge" | stk detect RUN --mark
"""
_CORRECT_SUMMARY = "correct texts with a trained model"
_CORRECT = """\
Read lines from FILE or standard input; write each of them corrected, or with its white space repaired
where the run was trained for that. Lines of any length; one of a slow pipe is answered when it comes.

  stk correct RUN letters.txt --output corrected.txt
  stk correct REPAIR_RUN < texts.txt | stk detect RUN --with-text | stk correct RUN --detected
"""


def add(parsers: Parsers) -> None:
    """Add both commands."""
    _add_detect(command(parsers, "detect", _DETECT_SUMMARY, _DETECT))
    _add_correct(command(parsers, "correct", _CORRECT_SUMMARY, _CORRECT))


def _add_detect(parser: argparse.ArgumentParser) -> None:
    _add_common(parser)
    parser.add_argument(
        "--threshold", type=float, metavar="P", help="probability above which it is an error (default 0.5)"
    )
    forms = parser.add_mutually_exclusive_group()
    forms.add_argument(
        "--with-text",
        action="store_const",
        dest="form",
        const="with_text",
        help="write text, tab, labels: what `stk correct --detected` reads",
    )
    forms.add_argument(
        "--mark",
        action="store_const",
        dest="form",
        const="marked",
        help="write the text with wrong words in brackets",
    )


def _add_correct(parser: argparse.ArgumentParser) -> None:
    _add_common(parser)
    parser.add_argument(
        "--search",
        choices=("greedy", "beam", "best_first"),
        help="how a text is written (default: as the run was evaluated)",
    )
    parser.add_argument("--beam-width", type=int, metavar="N", help="texts that a beam keeps")
    marks = parser.add_mutually_exclusive_group()
    marks.add_argument(
        "--detected",
        action="store_true",
        help="lines have labels behind a tab, of `stk detect --with-text`: leave words alone that have a 0",
    )
    marks.add_argument(
        "--detections",
        metavar="FILE",
        help="labels of the lines, in a file of their own; - for standard input",
    )


def _add_common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN", help=RUN_HELP)
    parser.add_argument("file", nargs="?", metavar="FILE", help="lines of text (default: standard input)")
    parser.add_argument(
        "--output", metavar="FILE", help="written when it is whole (default: standard output)"
    )
    parser.add_argument(
        "--device",
        choices=("auto", "cpu", "cuda"),
        default="auto",
        help="auto (default): a GPU if there is",
    )
    parser.add_argument(
        "--batch-tokens", type=int, metavar="N", help="tokens that the model reads at once (default 16384)"
    )
    parser.add_argument(
        "--progress",
        action=argparse.BooleanOptionalAction,
        help="a bar on a terminal (default: unless lines go there, too)",
    )
