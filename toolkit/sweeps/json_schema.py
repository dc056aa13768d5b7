"""The JSON Schema of an experiment file with its section `sweep`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from toolkit.config.fields import SWEEP
from toolkit.config.json_schema import experiment_schema
from toolkit.config.schema import NAME_PATTERN
from toolkit.sweeps.section import CHOICES
from toolkit.system.output.json_text import json_text

_COUNT = {"type": "integer", "minimum": 1}
_KEYS: Mapping[str, Mapping[str, Any]] = {
    "name": {"type": "string", "pattern": f"^({NAME_PATTERN})$"},
    "method": {"enum": list(CHOICES["method"])},
    "parameters": {
        "type": "object",
        "description": "key: a list of values, one value, or a range such as {loguniform: [1e-5, 1e-3]}",
    },
    "runs": {
        "type": "array",
        "items": {"type": "object", "minProperties": 1},
        "minItems": 1,
        "description": "The runs, each as {key: value, ...}",
    },
    "zip": {"type": "array", "minItems": 1, "description": "Keys that vary together"},
    "seeds": {"type": "array", "items": {"type": "integer", "minimum": 0}, "minItems": 1},
    "samples": {**_COUNT, "description": "Runs of a random sweep"},
    "seed": {"type": "integer", "minimum": 0, "description": "Seed of the draws"},
    "sampler": {"type": "string", "minLength": 1, "description": "A sampler of Optuna"},
    "max_parallel": {**_COUNT, "description": "Runs that train at the same time"},
    "metric": {"type": "string", "minLength": 1, "description": "The metric that ranks the runs"},
    "goal": {"enum": list(CHOICES["goal"])},
}


def file_schema(files: Sequence[Path] = ()) -> str:
    """The JSON Schema of an experiment file, its section `sweep` included, as text.

    files  experiments whose own code defines the keys of data and model. Raises ConfigError for their faults
    """
    keys = {name: {"anyOf": [schema, {"type": "null"}]} for name, schema in _KEYS.items()}
    section = {"type": "object", "properties": keys, "additionalProperties": False}
    # A reference: the section may be in a separate file.
    sweep = {
        "anyOf": [section, {"type": "null"}, {"$ref": "#/$defs/reference"}],
        "description": "The runs that `stk sweep` makes of this experiment.",
    }
    return json_text(experiment_schema({SWEEP: sweep}, files), indent=1)
