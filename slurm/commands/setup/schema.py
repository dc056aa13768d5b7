"""stk schema"""

from __future__ import annotations

from argparse import Namespace

from toolkit.config.fields import SWEEP
from toolkit.config.json_schema import experiment_schema
from toolkit.sweeps.json_schema import sweep_schema
from toolkit.system.json_text import json_text


def run(arguments: Namespace) -> int:
    """Print the schema."""
    print(json_text(experiment_schema({SWEEP: sweep_schema()}), indent=1))
    return 0
