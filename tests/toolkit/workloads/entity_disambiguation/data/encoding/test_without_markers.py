"""The tokenizer that a run keeps gives the same ids, and texts cannot contain markers."""

from __future__ import annotations

from pathlib import Path

from tests.toolkit.support.bert import write_bert
from toolkit.workloads.entity_disambiguation.data.encoding.tokenizer import (
    ENT_END,
    MarkedTokenizer,
    write_without_markers,
)


def test_tokenizer_kept_without_markers_gives_the_same_ids(tmp_path: Path) -> None:
    write_bert(tmp_path / "bert")
    first = MarkedTokenizer(str(tmp_path / "bert"), 32)
    (tmp_path / "marked").mkdir()
    first.save(tmp_path / "marked")
    write_without_markers(list((tmp_path / "marked").glob("*.json")), tmp_path / "kept")
    again = MarkedTokenizer(str(tmp_path / "kept"), 32, first.pad_id)
    assert (again.size, again.markers, again.like) == (first.size, first.markers, first.like)
    text = f"water {ENT_END} of the arn"
    assert again.encode([text])[0].tolist() == first.encode([text])[0].tolist()
    assert first.markers[ENT_END] not in again.encode([text])[0]
