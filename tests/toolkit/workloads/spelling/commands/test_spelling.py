"""stk spelling: dictionaries, misspellings, tokenizers and benchmarks from the command line."""

from __future__ import annotations

import json

import pytest

from tests.slurm.support.user import User
from tests.toolkit.nlp.sentences import TEXTS
from toolkit.workloads.spelling.data.texts.dictionary import read_dictionary
from toolkit.workloads.spelling.tokenizers.tokenizer import load_tokenizer


@pytest.fixture
def texts(user: User) -> User:
    user.write("texts.txt", "\n".join(TEXTS) + "\n")
    user.write("codespell.txt", "".join(f"{word[1]}{word[0]}{word[2:]}->{word}\n" for word in WORDS))
    return user


WORDS = ("the", "and", "their", "which", "river", "about", "north", "council", "sold", "lost", "mill")


def test_words_are_counted_and_dictionaries_are_merged(texts: User, monkeypatch: pytest.MonkeyPatch) -> None:
    # Gives a file colours, but no progress bar.
    monkeypatch.setenv("FORCE_COLOR", "1")
    answer = texts.stk("spelling", "dictionary", "a.txt", "--text", "texts.txt", "--top", "20")
    assert (answer.code, answer.err) == (0, "")
    counted = read_dictionary(texts.root / "a.txt")
    assert len(counted) == 20
    assert answer.out == f"wrote a.txt: 20 of 68 words, which occur {sum(counted.values())} times\n"
    texts.write("b.txt", "the\t1000\nnew\t7\n")
    told = texts.stk("spelling", "dictionary", "c.txt", "--dictionary", "a.txt", "b.txt", "--json").out
    merged = read_dictionary(texts.root / "c.txt")
    assert merged == counted | {"the": counted["the"] + 1000, "new": 7}
    assert next(iter(merged)) == "the"
    assert json.loads(told) == {"path": "c.txt", "words": 21, "occurrences": sum(merged.values())}


def test_misspellings_are_divided_into_splits(texts: User) -> None:
    texts.stk("spelling", "dictionary", "words.txt", "--text", "texts.txt")
    command = ("spelling", "misspellings", "out", "--list", "codespell.txt", "--dictionary", "words.txt")
    answer = texts.stk(*command, "--dev", "30", "--test", "30", "--json")
    splits = json.loads(answer.out)["splits"]
    assert sum(each["misspellings"] for each in splits.values()) == len(WORDS)
    for name, each in splits.items():
        listed = json.loads((texts.root / "out" / f"{name}_misspellings.json").read_text())
        assert len(listed) == each["words"]
        assert listed.keys() <= set(WORDS)
    assert texts.stk(*command, "--dev", "30", "--test", "30").out.startswith("wrote out: ")


@pytest.mark.parametrize(
    "kind, options, tokens",
    [
        ("bpe", ("--text", "texts.txt", "--vocabulary", "300"), 300),
        ("characters", (), 99),
        ("bytes", (), 260),
        ("words", ("--dictionary", "words.txt", "--vocabulary", "24"), 24),
    ],
)
def test_tokenizers_of_all_kinds_are_made(
    texts: User, kind: str, options: tuple[str, ...], tokens: int
) -> None:
    texts.stk("spelling", "dictionary", "words.txt", "--text", "texts.txt")
    answer = texts.stk("spelling", "tokenizer", kind, "t.json", *options)
    assert (answer.code, answer.out) == (0, f"wrote t.json: {tokens} tokens\n")
    assert len(load_tokenizer(texts.root / "t.json")) == tokens


def test_the_words_of_a_tokenizer_are_the_most_frequent_of_a_dictionary(texts: User) -> None:
    texts.write("words.txt", "a\t1\nb\t9\nc\t5\n")
    texts.stk("spelling", "tokenizer", "words", "t.json", "--dictionary", "words.txt", "--vocabulary", "6")
    known = load_tokenizer(texts.root / "t.json")
    assert known.decode(known.encode("a b c")) == "b c"


def test_benchmarks_are_written_for_every_task(texts: User) -> None:
    command = ("spelling", "benchmark", "texts.txt", "out", "--group", "own", "--split", "test")
    answer = texts.stk(*command, "--noise", "artificial", "--limit", "6")
    assert (answer.code, answer.err) == (0, "")
    assert [line.partition(":")[0] for line in answer.out.splitlines()] == [
        f"wrote out/{task}/own/test" for task in ("sed_words", "sed_sequence", "sec", "tokenization_repair")
    ]
    assert all(": 6 texts, " in line for line in answer.out.splitlines())
    again = texts.stk(*command, "--noise", "artificial")
    assert again.code == 2
    assert "out/sed_words/own/test holds a benchmark already" in again.err


def test_a_single_task_can_be_chosen(texts: User) -> None:
    texts.write("m.json", '{"the": ["teh"]}')
    command = ("spelling", "benchmark", "texts.txt", "out", "--group", "own", "--split", "dev")
    noise = ("--noise", "realistic", "--misspellings", "m.json", "--rate", "1")
    told = json.loads(texts.stk(*command, *noise, "--task", "sec", "--json").out)
    assert told == {
        "sec": {
            "path": "out/sec/own/dev",
            "lines": 8,
            "lines_with_errors": sum("the" in text.lower().split() for text in TEXTS),
            "words": told["sec"]["words"],
            "errors": sum(text.lower().split().count("the") for text in TEXTS),
        }
    }


BENCHMARK = ("benchmark", "texts.txt", "out", "--group", "g", "--split", "s", "--noise")


@pytest.mark.parametrize(
    "arguments, problem",
    [
        (("dictionary", "a.txt"), "nothing to count: name files with --text or --dictionary"),
        (("dictionary", "a.txt", "--text", "no.txt"), "no.txt cannot be read: No such file"),
        (("dictionary", "a.txt", "--text", "texts.txt", "--top", "0"), "--top is 0, expected 1 or more"),
        (("dictionary", "no/a.txt", "--text", "texts.txt"), "No such file or directory"),
        (("misspellings", "o", "--dictionary", "d", "--dev", "60", "--test", "40"), "leave something for"),
        (("misspellings", "o", "--dictionary", "d"), "name lists with --list"),
        (("tokenizer", "bpe", "t.json"), "name files with --text"),
        (("tokenizer", "words", "t.json"), "name it with --dictionary"),
        ((*BENCHMARK, "mixed"), "mixed noise needs misspellings"),
        ((*BENCHMARK, "artificial", "--rate", "1.5"), "--rate is 1.5, expected a share above 0"),
        ((*BENCHMARK, "artificial", "--limit", "0"), "--limit is 0, expected 1 or more"),
    ],
)
def test_an_error_is_one_line(texts: User, arguments: tuple[str, ...], problem: str) -> None:
    answer = texts.stk("spelling", *arguments)
    assert (answer.code, answer.out) == (2, "")
    assert problem in answer.err
    assert answer.err.count("\n") == 1
    assert not (texts.root / "out").exists()


def test_an_unknown_task_is_refused_with_the_known_ones(texts: User) -> None:
    answer = texts.stk("spelling", *BENCHMARK, "artificial", "--task", "sec", "seq")
    assert answer.code == 2
    assert all(part in answer.err for part in ("--task", "'seq'", "sed_words"))
    assert "sed_words" in texts.stk("spelling", "benchmark", "--help").out
