"""stk schema"""

from __future__ import annotations

import json
from argparse import Namespace

from toolkit.config.fields import SWEEP
from toolkit.config.json_schema import experiment_schema
from toolkit.sweeps.json_schema import sweep_schema


def run(arguments: Namespace) -> int:
    """Print the schema."""
    print(json.dumps(experiment_schema({SWEEP: sweep_schema()}), indent=1, ensure_ascii=False))
    return 0
