"""stk schema"""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from toolkit.sweeps.json_schema import file_schema


def run(arguments: Namespace) -> int:
    """Print the schema. Raises ConfigError if an experiment is invalid."""
    print(file_schema([Path(each) for each in arguments.config]))
    return 0
