"""The arguments of `stk spelling`, which makes what the spelling tasks are trained and scored with."""

from __future__ import annotations

import argparse
from pathlib import Path

from slurm.arguments.common import Parsers, command

_DESCRIPTION = """\
Dictionaries, misspellings, tokenizers and benchmarks, made of clean texts (one a line).

  stk spelling dictionary words.txt --text train.txt --top 100000
                                   words with their frequencies
  stk spelling misspellings misspellings --list codespell.txt --dictionary words.txt
                                   train, dev and test misspellings, none of which is in two
  stk spelling tokenizer bpe tokenizer.json --text train.txt --vocabulary 10000
                                   byte-level BPE; also characters, bytes, words
  stk spelling benchmark test.txt benchmarks --group wiki_realistic --split test \\
      --noise realistic --misspellings misspellings/test_misspellings.json
                                   corrupt.txt and correct.txt for every task
"""

_TEXT = "clean texts (UTF-8), one a line"
_DICTIONARY = "dictionary: a word, a tab and its frequency a line"


def add(parsers: Parsers) -> None:
    """Add the actions and their arguments."""
    parser = command(parsers, "spelling", "dictionaries, misspellings, tokenizers, benchmarks", _DESCRIPTION)
    actions = parser.add_subparsers(title="actions", required=True, metavar="ACTION")
    _add_dictionary(actions)
    _add_misspellings(actions)
    _add_tokenizer(actions)
    _add_benchmark(actions)


def _action(actions: Parsers, name: str, summary: str, description: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = actions.add_parser(
        name, help=summary, description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.set_defaults(action=name)
    parser.add_argument("--json", action="store_true", help="one JSON document on standard output")
    return parser


def _files(parser: argparse.ArgumentParser, name: str, help_: str) -> None:
    parser.add_argument(name, type=Path, nargs="+", action="extend", default=[], metavar="FILE", help=help_)


def _number(parser: argparse.ArgumentParser, name: str, default: int | None, help_: str) -> None:
    shown = "" if default is None else f" (default {default})"
    parser.add_argument(name, type=int, default=default, metavar="N", help=help_ + shown)


def _add_dictionary(actions: Parsers) -> None:
    parser = _action(
        actions,
        "dictionary",
        "count words, merge dictionaries",
        "Write words and their frequencies, most frequent first: those of texts, counted in their case\n"
        "without numbers, addresses and punctuation, and those of other dictionaries, added up.",
    )
    parser.add_argument("out", type=Path, metavar="OUT", help="dictionary to be written")
    _files(parser, "--text", _TEXT)
    _files(parser, "--dictionary", _DICTIONARY)
    _number(parser, "--top", None, "keep the N most frequent words")
    _number(parser, "--at-least", 1, "keep words that occur N times or more")


def _add_misspellings(actions: Parsers) -> None:
    parser = _action(
        actions,
        "misspellings",
        "list misspellings, divided into train, dev and test",
        "Write train_misspellings.json, dev_misspellings.json and test_misspellings.json: word ->\n"
        "misspellings. Kept are pairs of letters alone, at most ten edits apart, whose word the dictionary\n"
        "has. A hash of the misspelling says where it goes: none is in two files, and adding some moves no\n"
        "other.",
    )
    parser.add_argument("out", type=Path, metavar="OUT", help="folder for the three files")
    _files(
        parser, "--list", "lists of lines `wrong->right[, right2,]`, as codespell has them, or .json files"
    )
    parser.add_argument("--dictionary", type=Path, required=True, metavar="FILE", help=_DICTIONARY)
    for split in ("dev", "test"):
        parser.add_argument(
            f"--{split}", type=float, default=2.5, metavar="P", help=f"percent of {split} (default 2.5)"
        )
    _number(parser, "--seed", 22, "another seed divides otherwise")


def _add_tokenizer(actions: Parsers) -> None:
    parser = _action(
        actions,
        "tokenizer",
        "make a tokenizer",
        "Write a tokenizer (tokenizers library, JSON); <pad>, <unk>, <bos>, <eos> are its first tokens.\n\n"
        "  bpe          byte-level BPE, trained on --text\n"
        "  characters   letters, digits, punctuation and space of ASCII: 99 tokens\n"
        "  bytes        of UTF-8: 260 tokens\n"
        "  words        the most frequent ones of --dictionary",
    )
    parser.add_argument(
        "kind", choices=("bpe", "characters", "bytes", "words"), help="what a token is", metavar="KIND"
    )
    parser.add_argument("out", type=Path, metavar="OUT", help="file to be written")
    _files(parser, "--text", f"{_TEXT} (bpe)")
    parser.add_argument("--dictionary", type=Path, metavar="FILE", help=f"{_DICTIONARY} (words)")
    _number(parser, "--vocabulary", 10_000, "tokens, special ones included (bpe, words)")
    _number(parser, "--min-frequency", 2, "how often two tokens stand together before they are one (bpe)")
    parser.add_argument("--strip-accents", action="store_true", help="letters lose their accents (bpe)")


def _add_benchmark(actions: Parsers) -> None:
    parser = _action(
        actions,
        "benchmark",
        "write texts with errors, and what is right",
        "Write OUT/TASK/GROUP/SPLIT/corrupt.txt and correct.txt for the tasks sed_words, sed_sequence, sec\n"
        "and tokenization_repair. The same texts, noise and seed make the same files. For a fair test the\n"
        "texts and the misspellings are ones that training has not seen.",
    )
    parser.add_argument("text", type=Path, metavar="TEXT", help=_TEXT)
    parser.add_argument("out", type=Path, metavar="OUT", help="folder of benchmarks")
    parser.add_argument("--group", required=True, metavar="NAME", help="such as wiki_realistic")
    parser.add_argument("--split", required=True, metavar="NAME", help="such as test")
    parser.add_argument(
        "--noise",
        choices=("artificial", "realistic", "mixed"),
        required=True,
        help="errors are edits of letters, listed misspellings, or a fifth of them the former",
    )
    parser.add_argument("--misspellings", type=Path, metavar="FILE", help="word -> misspellings (JSON)")
    parser.add_argument(
        "--rate", type=float, default=0.2, metavar="R", help="share of misspelt words (default 0.2)"
    )
    parser.add_argument(
        "--task", nargs="+", action="extend", default=[], metavar="TASK", help="these tasks only"
    )
    _number(parser, "--limit", None, "at most N texts, evenly from all of the file")
    _number(parser, "--seed", 22, "another seed makes other errors")
