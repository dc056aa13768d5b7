"""stk schema"""

from __future__ import annotations

from argparse import Namespace

from toolkit.sweeps.json_schema import file_schema


def run(arguments: Namespace) -> int:
    """Print the schema."""
    print(file_schema())
    return 0
