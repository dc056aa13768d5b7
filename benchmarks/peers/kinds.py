"""All tools by their names."""

from __future__ import annotations

import sys

from stk_tool import Stk, StkSameJob
from tools import (
    HuggingFace,
    HuggingFaceJit,
    HuggingFaceRestarts,
    Lightning,
    LightningTorchrun,
    Submitit,
    Tool,
)

PEERS = {
    tool.name: tool
    for tool in (Submitit, Lightning, LightningTorchrun, HuggingFace, HuggingFaceJit, HuggingFaceRestarts)
}


def tool_of(name: str, python: str = sys.executable) -> Tool:
    """A tool; peers run with that Python."""
    ours = {tool.name: tool for tool in (Stk, StkSameJob)}
    return ours[name]() if name in ours else PEERS[name](python)
