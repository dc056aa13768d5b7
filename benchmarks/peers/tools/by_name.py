"""All tools by name."""

from __future__ import annotations

import sys

from tools.peers import (
    HuggingFace,
    HuggingFaceJit,
    HuggingFaceRestarts,
    Lightning,
    LightningTorchrun,
    Submitit,
)
from tools.stk import Stk, StkSameJob
from tools.stk_callbacks import StkLightning, StkTrainer
from tools.tool import Tool

PEERS = {
    tool.name: tool
    for tool in (Submitit, Lightning, LightningTorchrun, HuggingFace, HuggingFaceJit, HuggingFaceRestarts)
}
#: The scripts of Trainer and Lightning as runs of this project.
_WITH_CALLBACKS = {tool.name: tool for tool in (StkTrainer, StkLightning)}


def tool_of(name: str, python: str = sys.executable) -> Tool:
    """Return a tool by name. Raises KeyError. Other projects' tools run with `python`."""
    ours = {tool.name: tool for tool in (Stk, StkSameJob)}
    return ours[name]() if name in ours else (PEERS | _WITH_CALLBACKS)[name](python)
