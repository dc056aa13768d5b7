"""Files that the scripts of the spelling study take for what they would make."""

from __future__ import annotations

from pathlib import Path

from toolkit.workloads.spelling.tokenizers.make_tokenizer import characters

_PREPARED = (
    "text/train.txt",
    "dictionaries/merged_train.txt",
    "misspellings/train_misspellings.json",
    *(f"tokenizers/{name}.json" for name in ("bpe_1000", "bpe_10000", "characters", "bytes")),
    "text/test.txt",
    *(
        f"{folder}/{task}/wiki_{noise}/{split}/{side}.txt"
        for folder in ("benchmarks", "benchmarks_small")
        for task in ("sed_words", "sed_sequence", "sec", "tokenization_repair")
        for noise in ("artificial", "realistic")
        for split in ("dev", "test")
        for side in ("corrupt", "correct")
    ),
)


def pretend_prepared(data: Path) -> Path:
    """Make tiny files in place of those that scripts/prepare_spelling makes; return their folder."""
    contents = {
        "tokenizers": characters().to_str(),
        "misspellings": "{}",
        "dictionaries": "text\t1\n",
        "text": "text\n" * 1000,
    }
    for name in _PREPARED:
        path = data / "spelling" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(contents.get(name.partition("/")[0], "text\n"))
    return data / "spelling"
