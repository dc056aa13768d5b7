"""Two tiny experiments and their made-up data. The bytes written here belong to the runs in the archives.

All paths begin with HERE, the working folder of the process that reads them: a run's identity has the paths
of its data in it, and so an archive can be unpacked anywhere, unchanged.
"""

from __future__ import annotations

import json
import string
from collections.abc import Iterator
from pathlib import Path

HERE = "/proc/self/cwd"

REVIEWS = f"""\
name: reviews
seed: 5
task: {{kind: text_classification}}
model: {{kind: docnn, embedding_dim: 4, filters: 3, kernels: [2, 3], dropout: 0.3}}
data: {{path: {HERE}/reviews.tsv, prepared_dir: {HERE}/prepared}}
train: {{epochs: 2, batch_size: 32, eval_per_epoch: 2, device: cpu}}
optimizer: {{lr: 0.05}}
"""

MISSPELT = f"""\
name: misspelt
seed: 6
task: {{kind: sed_words}}
model: {{kind: transformer, hidden_dim: 8, num_heads: 2, num_layers: 1, dropout: 0.1}}
data:
  datasets: ["{HERE}/texts.txt"]
  val_splits: [20]
  test: ["{HERE}/test.txt"]
  noise: {{kind: artificial, rate: 0.5}}
  tokenizer_path: {HERE}/tokenizer.json
  dictionary: {HERE}/dictionary.txt
  max_length: 100
  workers: 1
  prepared_dir: {HERE}/prepared
train: {{epochs: 2, batch_size: 8, bucket_batches: 3, eval_per_epoch: 2, device: cpu, logical_ranks: 4}}
optimizer: {{lr: 0.03}}
evaluation: {{metric: "f1:max"}}
"""

_OPINIONS = {"good": ("fine", "warm", "bright"), "bad": ("dull", "thin", "slow")}
_FILLERS = ("film", "plot", "scene", "a", "the", "of", "story")
_WORDS = ("stone", "river", "bridge", "morning", "garden", "letter", "window", "over", "the", "under")
_SPECIAL = ("<pad>", "<unk>", "<bos>", "<eos>")


def write(folder: Path) -> None:
    """Write both experiment files and all that they read."""
    files = {
        "reviews.yaml": REVIEWS,
        "misspelt.yaml": MISSPELT,
        "reviews.tsv": "\n".join(["text\tlabel", *reviews(240)]) + "\n",
        "texts.txt": "".join(f"{text}\n" for text in texts(84)),
        "test.txt": "".join(f"{text}\n" for text in texts(11, first=1000)),
        "tokenizer.json": json.dumps(_characters()),
        "dictionary.txt": "".join(f"{word}\t5\n" for word in _WORDS),
    }
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")


def reviews(count: int, first: int = 0) -> Iterator[str]:
    """Lines of a table: a text that tells its label, and the label."""
    for number in range(first, first + count):
        label = ("good", "bad")[number % 2]
        # One in seven is labelled wrongly: no score is perfect.
        meant = label if number % 7 else ("bad", "good")[number % 2]
        rest = (_FILLERS[(number + place) % 7] for place in range(number * 5 % 13))
        yield f"{' '.join([_OPINIONS[meant][number % 3], *rest])} no{number % 20}\t{label}"


def texts(count: int, first: int = 0) -> Iterator[str]:
    """Texts of two to eleven words."""
    for number in range(first, first + count):
        words = [_WORDS[(number * 7 + place * place) % len(_WORDS)] for place in range(2 + number * 3 % 10)]
        yield f"{words[0]}, {' '.join(words[1:])} {number}."


def _characters() -> dict[str, object]:
    """A tokenizer of single characters, as the library `tokenizers` stores one."""
    known = (*_SPECIAL, *string.ascii_letters, *string.digits, *string.punctuation, " ")
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {"id": number, "content": token, **flags, "special": True}
            for number, token in enumerate(_SPECIAL)
        ],
        "normalizer": None,
        "pre_tokenizer": {
            "type": "Split",
            "pattern": {"Regex": r"[\s\S]"},
            "behavior": "Isolated",
            "invert": False,
        },
        "post_processor": None,
        "decoder": {"type": "Fuse"},
        "model": {
            "type": "WordLevel",
            "vocab": {token: number for number, token in enumerate(known)},
            "unk_token": "<unk>",
        },
    }
