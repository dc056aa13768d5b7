"""stk prepare"""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from pathlib import Path

from rich.console import Console

from slurm.topology import scrub
from toolkit import launch
from toolkit.config import load
from toolkit.config.kinds import EntityMentions, SpellingTexts, TextTable
from toolkit.data.prepared import Prepared, prepare
from toolkit.display import Display, Live, Silent
from toolkit.mentions.prepared import MentionSet
from toolkit.mentions.prepared import prepare as prepare_mentions
from toolkit.spelling_samples.prepared import SpellingSet
from toolkit.spelling_samples.prepared import prepare as prepare_texts


def run(arguments: Namespace) -> int:
    """Build the prepared data of an experiment."""
    experiment = load(Path(arguments.config), arguments.overrides)
    prepared = _prepare(experiment.data)
    if getattr(experiment.model, "fixes_entities", False):
        # Vectors are computed in the worker's world: a process of its own keeps torch out of this one.
        code = launch.prepare(arguments.config, arguments.overrides, scrub(), sys.stderr)
        if code:
            return code
    print(json.dumps(prepared.to_json(), ensure_ascii=False) if arguments.json else prepared.summary())
    return 0


def _prepare(data: TextTable | EntityMentions | SpellingTexts) -> Prepared | MentionSet | SpellingSet:
    display = _display()
    try:
        if isinstance(data, EntityMentions):
            return prepare_mentions(data, display.preparing)
        if isinstance(data, SpellingTexts):
            return prepare_texts(data, display.preparing)
        return prepare(data, display.preparing)
    finally:
        display.stop()


def _display() -> Display:
    """A bar where somebody watches; not on standard output, which is for the answer."""
    console = Console(stderr=True)
    return Live(console) if console.is_terminal else Silent()
