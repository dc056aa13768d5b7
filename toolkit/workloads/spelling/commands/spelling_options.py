"""The arguments of `stk spelling`, which makes the files that spelling tasks are trained and scored with."""

from __future__ import annotations

from argparse import ArgumentParser
from functools import partial
from pathlib import Path

from toolkit.command import Action, Command, add_actions, add_json, add_number
from toolkit.workloads.spelling.benchmarks.kinds import KINDS

_DESCRIPTION = """\
Make dictionaries, misspellings, tokenizers and benchmarks from clean texts (one per line).

  stk spelling dictionary words.txt --text train.txt --top 100000
                                   words with their frequencies
  stk spelling misspellings misspellings --list codespell.txt --dictionary words.txt
                                   train, dev and test misspellings without overlap
  stk spelling tokenizer bpe tokenizer.json --text train.txt --vocabulary 10000
                                   byte-level BPE; also characters, bytes, words
  stk spelling benchmark test.txt benchmarks --group wiki_realistic --split test \\
      --noise realistic --misspellings misspellings/test_misspellings.json
                                   corrupt.txt and correct.txt for every task
"""

_TEXT = "clean texts (UTF-8), one per line"
_DICTIONARY = "dictionary: per line a word, a tab and its frequency"


def _files(parser: ArgumentParser, name: str, help_: str) -> None:
    parser.add_argument(name, type=Path, nargs="+", action="extend", default=[], metavar="FILE", help=help_)


def _dictionary(parser: ArgumentParser) -> None:
    parser.add_argument("out", type=Path, metavar="OUT", help="dictionary to write")
    _files(parser, "--text", _TEXT)
    _files(parser, "--dictionary", _DICTIONARY)
    add_number(parser, "--top", None, "keep the N most frequent words")
    add_number(parser, "--at-least", 1, "keep words that occur at least N times")
    add_json(parser)


def _misspellings(parser: ArgumentParser) -> None:
    parser.add_argument("out", type=Path, metavar="OUT", help="folder for the three files")
    _files(
        parser, "--list", "lists in codespell's format, with lines `wrong->right[, right2,]`, or .json files"
    )
    parser.add_argument("--dictionary", type=Path, required=True, metavar="FILE", help=_DICTIONARY)
    for split in ("dev", "test"):
        parser.add_argument(
            f"--{split}", type=float, default=2.5, metavar="P", help=f"percent of {split} (default 2.5)"
        )
    add_number(parser, "--seed", 22, "another seed gives another division")
    add_json(parser)


def _tokenizer(parser: ArgumentParser) -> None:
    parser.add_argument(
        "kind", choices=("bpe", "characters", "bytes", "words"), help="kind of the tokens", metavar="KIND"
    )
    parser.add_argument("out", type=Path, metavar="OUT", help="file to write")
    _files(parser, "--text", f"{_TEXT} (bpe)")
    parser.add_argument("--dictionary", type=Path, metavar="FILE", help=f"{_DICTIONARY} (words)")
    add_number(parser, "--vocabulary", 10_000, "tokens, special ones included (bpe, words)")
    add_number(parser, "--min-frequency", 2, "lowest frequency of a pair of tokens that is merged (bpe)")
    parser.add_argument("--strip-accents", action="store_true", help="remove accents from letters (bpe)")
    add_json(parser)


def _benchmark(parser: ArgumentParser) -> None:
    parser.add_argument("text", type=Path, metavar="TEXT", help=_TEXT)
    parser.add_argument("out", type=Path, metavar="OUT", help="folder of benchmarks")
    parser.add_argument("--group", required=True, metavar="NAME", help="such as wiki_realistic")
    parser.add_argument("--split", required=True, metavar="NAME", help="such as test")
    parser.add_argument(
        "--noise",
        choices=("artificial", "realistic", "mixed"),
        required=True,
        help="errors: edits of letters, listed misspellings, or one fifth edits and the rest misspellings",
    )
    parser.add_argument("--misspellings", type=Path, metavar="FILE", help="word -> misspellings (JSON)")
    parser.add_argument(
        "--rate", type=float, default=0.2, metavar="R", help="share of misspelt words (default 0.2)"
    )
    parser.add_argument(
        "--task", nargs="+", action="extend", default=[], choices=tuple(KINDS), help="only these tasks"
    )
    add_number(parser, "--limit", None, "at most N texts, spread evenly over the file")
    add_number(parser, "--seed", 22, "another seed makes other errors")
    add_json(parser)


_ACTIONS = {
    "dictionary": Action(
        "count words, merge dictionaries",
        "Write words and their frequencies, most frequent first. Words of texts are counted\n"
        "case-sensitively, without numbers, addresses and punctuation. Those of other dictionaries\n"
        "are added.",
        _dictionary,
    ),
    "misspellings": Action(
        "list misspellings, divided into train, dev and test",
        "Write train_misspellings.json, dev_misspellings.json and test_misspellings.json: word ->\n"
        "misspellings. A pair is kept if both are words of letters at most ten edits apart, and the\n"
        "right word is in the dictionary. A hash of the misspelling decides its file, so no misspelling\n"
        "is in two files, and added misspellings do not move others.",
        _misspellings,
    ),
    "tokenizer": Action(
        "make a tokenizer",
        "Write a tokenizer (tokenizers library, JSON). It begins with <pad>, <unk>, <bos> and <eos>.\n\n"
        "  bpe          byte-level BPE, trained on --text\n"
        "  characters   letters, digits, punctuation and space of ASCII: 99 tokens\n"
        "  bytes        of UTF-8: 260 tokens\n"
        "  words        the most frequent words of --dictionary",
        _tokenizer,
    ),
    "benchmark": Action(
        "write texts with errors, and the right answers",
        "Write OUT/TASK/GROUP/SPLIT/corrupt.txt and correct.txt for the tasks sed_words, sed_sequence,\n"
        "sec and tokenization_repair. The same texts, noise and seed give the same files. A fair test\n"
        "needs texts and misspellings that are not in the training data.",
        _benchmark,
    ),
}

SPELLING = Command(
    summary="dictionaries, misspellings, tokenizers, benchmarks",
    description=_DESCRIPTION,
    add_arguments=partial(add_actions, actions=_ACTIONS),
    run="toolkit.workloads.spelling.commands.spelling:run",
)
