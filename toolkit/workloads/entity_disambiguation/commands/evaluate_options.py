"""The option of `stk evaluate` that names the database of entities."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Sequence

from toolkit.command import EvaluateOptions


def _add_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("entity disambiguation")
    group.add_argument(
        "--entity-db", metavar="DIR", help="database of entities for --data, read as it is now"
    )


def _overrides(arguments: argparse.Namespace) -> Sequence[str]:
    if arguments.entity_db is None:
        return ()
    folder = os.path.abspath(os.path.expanduser(arguments.entity_db))
    return (f"data.entity_db={json.dumps(folder)}",)


EVALUATE = EvaluateOptions(add_arguments=_add_options, run_options=("entity_db",), overrides=_overrides)
