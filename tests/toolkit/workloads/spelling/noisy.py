"""An experiment whose data section has noise."""

from __future__ import annotations

from typing import Any


def tree(noise: Any = None) -> dict[str, Any]:
    data = {"datasets": ["a.txt"], "tokenizer_path": "bpe.json"} | ({} if noise is None else {"noise": noise})
    return {"name": "n", "task": {"kind": "sed_words"}, "model": {"kind": "transformer"}, "data": data}
