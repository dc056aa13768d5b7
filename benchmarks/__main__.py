"""Measure this project and other tools in turns, on the same work: one table for each figure.

python -m benchmarks [NAME…] [--quick] [--rounds N] [--json FILE] [--markdown FILE]
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.figures.tables import Table
from benchmarks.measuring.machine import busy, describe, sentence
from benchmarks.measuring.rounds import ChildFailed, Size
from benchmarks.registry import BENCHMARKS, measure


def main(argv: Sequence[str] | None = None) -> int:
    """Run the named benchmarks, or all of them; return the exit status."""
    arguments = _parser().parse_args(argv)
    unknown = sorted(set(arguments.names) - set(BENCHMARKS))
    if unknown:
        _print_stderr("error: ", f"there is no benchmark {unknown[0]}; there are {', '.join(BENCHMARKS)}")
        return 2
    machine = describe()
    if warning := busy(machine["load"], machine["cores"]):
        _print_stderr("warning: ", warning)
    size = Size(quick=arguments.quick, rounds=arguments.rounds or (1 if arguments.quick else 5))
    try:
        tables = [*_tables(arguments.names or list(BENCHMARKS), size)]
    except ChildFailed as error:
        _print_stderr("error: ", str(error))
        return 2
    machine["load_after"] = describe()["load"]
    text = "\n".join(_lines(machine, size, tables)) + "\n"
    print(text, end="")
    if arguments.markdown:
        arguments.markdown.write_text(text, encoding="utf-8")
    if arguments.json:
        arguments.json.write_text(json.dumps(_document(machine, size, tables), indent=1) + "\n")
    return 0


def _parser() -> argparse.ArgumentParser:
    listing = "\n".join(f"  {name:10} {about}" for name, (_, about) in BENCHMARKS.items())
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=f"{__doc__}\n{listing}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="benchmarks to run; default: all")
    parser.add_argument("--quick", action="store_true", help="toy size, only to test the benchmark")
    parser.add_argument("--rounds", type=int, metavar="N", help="default: 5; 1 with --quick")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every value of every round")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the tables")
    return parser


def _tables(names: Sequence[str], size: Size) -> Iterator[Table]:
    for name in names:
        with tempfile.TemporaryDirectory(prefix=f"benchmark-{name}-") as folder:
            yield from measure(name, size, Path(folder), partial(_print_stderr, f"{name}: "))


def _lines(machine: dict[str, Any], size: Size, tables: Sequence[Table]) -> Iterator[str]:
    yield f"{sentence(machine)}, after {machine['load_after']}; rounds: at most {size.rounds}."
    if size.quick:
        yield "Toy size: the figures mean nothing."
    if warning := busy(machine["load"], machine["cores"]):
        yield f"Warning: {warning}."
    for table in tables:
        yield ""
        yield from table.markdown()


def _document(machine: dict[str, Any], size: Size, tables: Sequence[Table]) -> dict[str, Any]:
    today = datetime.now(UTC).date().isoformat()
    head = {"machine": machine, "date": today, "quick": size.quick, "rounds": size.rounds}
    return {**head, "tables": [table.as_json() for table in tables]}


def _print_stderr(head: str, text: str) -> None:
    print(f"{head}{text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
