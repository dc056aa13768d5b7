"""`stk spelling`: make dictionaries, misspellings, tokenizers and benchmarks."""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict
from pathlib import Path
from typing import Any, BinaryIO

from rich.console import Console

from toolkit.command import Host, check_positive, run_action
from toolkit.errors import UserError
from toolkit.system.output.amounts import counted
from toolkit.system.output.json_text import json_text
from toolkit.training.output.progress_display import is_on_terminal
from toolkit.workloads.spelling.benchmarks.make import tasks_of, write_benchmark
from toolkit.workloads.spelling.data.noise.misspellings import (
    Misspellings,
    divide,
    merged,
    read_codespell,
    read_misspellings,
    usable,
    write_misspellings,
)
from toolkit.workloads.spelling.data.texts.dictionary import (
    count_words,
    most_frequent,
    read_dictionary,
    write_dictionary,
)
from toolkit.workloads.spelling.data.texts.text_files import read_texts, spread

#: Share of the errors that are edits of letters.
_ARTIFICIAL = {"artificial": 1.0, "realistic": 0.0, "mixed": 0.2}


def run(arguments: Namespace, host: Host) -> int:
    """Make the requested files. Raises DataError, UserError."""
    actions = {
        "dictionary": _dictionary,
        "misspellings": _misspellings,
        "tokenizer": _tokenizer,
        "benchmark": _benchmark,
    }
    return run_action(arguments, actions)


def _dictionary(arguments: Namespace) -> None:
    check_positive(arguments, "top", "at_least")
    if not arguments.text and not arguments.dictionary:
        raise UserError("nothing to count: name files with --text or --dictionary")
    found = count_words(_texts(arguments.text))
    for path in arguments.dictionary:
        found.update(read_dictionary(path))
    words = most_frequent(found, arguments.top, arguments.at_least)
    write_dictionary(arguments.out, words)
    frequency = sum(words.values())
    text = f"wrote {arguments.out}: {len(words)} of {len(found)} words, which occur {frequency} times"
    _answer(arguments, {"path": str(arguments.out), "words": len(words), "occurrences": frequency}, text)


def _misspellings(arguments: Namespace) -> None:
    shares = {"train": 100 - arguments.dev - arguments.test, "dev": arguments.dev, "test": arguments.test}
    if min(shares.values()) <= 0:
        raise UserError(
            f"--dev {arguments.dev:g} and --test {arguments.test:g} are percents; both must be above 0 and "
            "leave something for training"
        )
    if not arguments.list:
        raise UserError("no misspellings: name lists with --list")
    lists = [
        read_misspellings(path) if path.suffix == ".json" else read_codespell(path) for path in arguments.list
    ]
    listed = usable(merged(lists), read_dictionary(arguments.dictionary))
    splits = divide(listed, shares, arguments.seed)
    arguments.out.mkdir(parents=True, exist_ok=True)
    for name, split in splits.items():
        write_misspellings(arguments.out / f"{name}_misspellings.json", split)
    sizes = {
        name: {"misspellings": sum(map(len, split.values())), "words": len(split)}
        for name, split in splits.items()
    }
    text = ", ".join(
        f"{each['misspellings']} {name} (of {each['words']} words)" for name, each in sizes.items()
    )
    _answer(arguments, {"path": str(arguments.out), "splits": sizes}, f"wrote {arguments.out}: {text}")


def _tokenizer(arguments: Namespace) -> None:
    # The library takes long to import, and other actions do not need it.
    from toolkit.workloads.spelling.tokenizers import make_tokenizer

    check_positive(arguments, "vocabulary", "min_frequency")
    kind = arguments.kind
    if kind == "bpe":
        if not arguments.text:
            raise UserError("bpe is trained on texts; name files with --text")
        tokenizer = make_tokenizer.train_bpe(
            _texts(arguments.text),
            arguments.vocabulary,
            min_frequency=arguments.min_frequency,
            strip_accents=arguments.strip_accents,
        )
    elif kind == "words":
        if arguments.dictionary is None:
            raise UserError("the words come from a dictionary; name it with --dictionary")
        room = max(arguments.vocabulary - len(make_tokenizer.SPECIAL), 0)
        tokenizer = make_tokenizer.words([*most_frequent(read_dictionary(arguments.dictionary), room)])
    else:
        tokenizer = make_tokenizer.characters() if kind == "characters" else make_tokenizer.byte_values()
    make_tokenizer.save(tokenizer, arguments.out)
    size = tokenizer.get_vocab_size()
    _answer(arguments, {"path": str(arguments.out), "tokens": size}, f"wrote {arguments.out}: {size} tokens")


def _benchmark(arguments: Namespace) -> None:
    check_positive(arguments, "limit")
    if not 0 < arguments.rate <= 1:
        raise UserError(f"--rate is {arguments.rate:g}, expected a share above 0, at most 1")
    if arguments.noise != "artificial" and arguments.misspellings is None:
        raise UserError(f"{arguments.noise} noise needs misspellings; name them with --misspellings")
    listed = Misspellings.load(arguments.misspellings) if arguments.misspellings else Misspellings({})
    tasks = tasks_of(_ARTIFICIAL[arguments.noise], listed, arguments.rate)
    sizes: dict[str, Any] = {}
    for name in arguments.task or tasks:
        folder = arguments.out / name / arguments.group / arguments.split
        texts = spread(arguments.text, arguments.limit, _open_with_bar)
        size = write_benchmark(folder, tasks[name], texts, arguments.seed)
        sizes[name] = {"path": str(folder), **asdict(size)}
        if not arguments.json:
            text = f"wrote {folder}: {counted(size.lines, 'text')}, {size.lines_with_errors} with errors"
            if size.errors is not None:
                share = 100 * size.errors / size.words
                text += f"; {size.words} words, {size.errors} of them wrong ({share:.1f} %)"
            print(text, flush=True)
    if arguments.json:
        print(json.dumps(sizes))


def _texts(paths: Sequence[Path]) -> Iterator[str]:
    for path in paths:
        yield from read_texts(path, _open_with_bar)


def _open_with_bar(path: Path) -> AbstractContextManager[BinaryIO]:
    """Open a file; on a terminal, a progress bar shows how much has been read."""
    console = Console(stderr=True)
    if not is_on_terminal(console):
        return open(path, "rb")
    from rich import progress

    return progress.open(path, "rb", description=path.name, console=console, transient=True)


def _answer(arguments: Namespace, value: Any, text: str) -> None:
    print(json_text(value) if arguments.json else text)
