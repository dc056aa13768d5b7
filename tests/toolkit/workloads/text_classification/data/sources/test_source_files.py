"""Settings and files that decide the content of a prepared set."""

from __future__ import annotations

import gzip
from dataclasses import replace
from pathlib import Path

import pytest

from tests.toolkit.nlp.tokenizers.test_pretrained import bert
from toolkit.workload import silent
from toolkit.workloads.text_classification.config import TextTable


def test_options_of_word_tokenizers_have_no_effect_on_a_pretrained_tokenizer(tmp_path: Path) -> None:
    table = tmp_path / "texts.tsv"
    table.write_text("text\tlabel\na b\tx\n")
    one = TextTable(path=str(table), tokenizer="pretrained", tokenizer_path=bert(tmp_path))
    other = replace(one, lowercase=False, min_count=5)
    assert one.prepared_place(silent) == other.prepared_place(silent)


@pytest.mark.parametrize("name", ["table.csv.gz", "table.jsonl", "table.jsonl.gz"])
def test_a_prepared_set_depends_on_the_content_of_a_file_and_not_on_its_folder(
    tmp_path: Path, name: str
) -> None:
    def place(folder: str, text: str) -> tuple[Path, str]:
        path = tmp_path / folder / name
        path.parent.mkdir(exist_ok=True)
        rows = f'{{"text": "{text}", "label": "a"}}\n' if "jsonl" in name else f"text,label\n{text},a\n"
        path.write_bytes(gzip.compress(rows.encode(), mtime=0) if name.endswith(".gz") else rows.encode())
        data = TextTable(path=str(path), prepared_dir=str(tmp_path / "prepared"))
        return data.prepared_place(silent)

    first = place("one", "x")
    assert place("other", "x") == first
    assert place("other", "y") != first
