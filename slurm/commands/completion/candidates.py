"""Candidates for the word at the cursor, from the parser that reads the command line."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from toolkit.run.run_dir import experiment_dir, find_runs

#: A candidate that stands for file names, which the shell completes.
FILES = ":files"

#: Kinds of arguments, by their names in --help.
_KEYS = ("key=value", "key=a,b")
_NAMES_FILES = ("CONFIG", "FILE", "DIR", "FOLDER", "OUT", "TEXT")

#: A word without characters that are special in a shell.
_PLAIN = re.compile(r"\w[\w.+-]*", re.ASCII)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A word, and its text in --help."""

    word: str
    help: str = ""

    def __str__(self) -> str:
        """Return a line for the shells: word, tab, help."""
        return f"{self.word}\t{' '.join(self.help.split())}"


class _Place:
    """The place of the cursor, after the words before it.

    waiting     the option that the next word may be a value of; `given` is the number of its values
    positional  number of words that were neither options nor values of options
    """

    def __init__(self, parser: argparse.ArgumentParser) -> None:
        self._enter(parser)

    def _enter(self, parser: argparse.ArgumentParser) -> None:
        self.parser = parser
        self.waiting: argparse.Action | None = None
        self.given = 0
        self.positional = 0

    def pass_by(self, word: str) -> None:
        """Process a word before the cursor."""
        if word.startswith("-") and word != "-":
            option = self.parser._option_string_actions.get(word)
            self.waiting, self.given = (option if option is not None and option.nargs != 0 else None), 0
        elif self.waiting is not None and self._takes_more(self.waiting):
            self.given += 1
        elif (chosen := self._sub_parser(word)) is not None:
            self._enter(chosen)
        else:
            self.waiting = None
            self.positional += 1

    def _takes_more(self, option: argparse.Action) -> bool:
        if option.nargs in ("+", "*", argparse.REMAINDER):
            return True
        return self.given < (option.nargs if isinstance(option.nargs, int) else 1)

    def _sub_parser(self, word: str) -> argparse.ArgumentParser | None:
        for action in self.parser._actions:
            if isinstance(action, argparse._SubParsersAction) and self.positional == 0:
                found: argparse.ArgumentParser | None = action.choices.get(word)
                return found
        return None

    def candidates(self, words: Sequence[str]) -> Iterator[Candidate]:
        """Yield the candidates for the last word, the one at the cursor."""
        if words[-1].startswith("-"):
            for option in self.parser._actions:
                if option.help != argparse.SUPPRESS:
                    long = [name for name in option.option_strings if name.startswith("--")]
                    text = (option.help or "").replace("%%", "%")
                    yield from (Candidate(name, text) for name in long or option.option_strings)
            return
        if self.waiting is not None and self._takes_more(self.waiting):
            yield from _values(self.waiting, self.given, words)
            if self.waiting.nargs != "?":
                return
        if (action := self._next_positional()) is not None:
            yield from _values(action, self.positional, words)

    def _next_positional(self) -> argparse.Action | None:
        """Return the argument for the next positional word; None without one."""
        left = self.positional
        actions = [action for action in self.parser._actions if not action.option_strings]
        for action in actions:
            if action.nargs in ("*", "+", argparse.REMAINDER) or left == 0:
                return action
            left -= 1
        return None


def _values(action: argparse.Action, number: int, words: Sequence[str]) -> Iterator[Candidate]:
    """Yield values of an argument; `number` selects one of several names of its values."""
    if action.help == argparse.SUPPRESS:
        return
    if isinstance(action, argparse._SubParsersAction):
        yield from (Candidate(each.dest, each.help or "") for each in action._choices_actions)
    elif action.choices is not None:
        yield from (Candidate(str(choice)) for choice in action.choices)
    else:
        names = action.metavar if isinstance(action.metavar, tuple) else (action.metavar or "",)
        yield from _named(names[min(number, len(names) - 1)], words)


def _named(name: str, words: Sequence[str]) -> Iterator[Candidate]:
    *before, current = words
    if name in _KEYS:
        from slurm.commands.completion.keys import keys

        key, equals, _ = current.partition("=")
        if equals:
            yield from (Candidate(f"{key}={choice}") for choice in keys(before).get(key, ()))
        else:
            yield from (Candidate(f"{each}=") for each in keys(before))
    elif name == "RUN":
        ids = (run.run_id for run in find_runs(experiment_dir()))
        # Only ids that need no quoting: the shell inserts them unchanged.
        yield from (Candidate(run_id) for run_id in ids if _PLAIN.fullmatch(run_id))
        if "/" in current:
            yield Candidate(FILES)
    elif name in _NAMES_FILES:
        yield Candidate(FILES)


def candidates(parser: argparse.ArgumentParser, words: Sequence[str]) -> list[Candidate]:
    """Return the candidates for the last of these words, given those before it.

    words   words after the command's name; the last one may be incomplete
    """
    *before, current = words or [""]
    if "--" in before:
        # The words of a user's own command.
        return [Candidate(FILES)]
    place = _Place(parser)
    for word in before:
        place.pass_by(word)
    found = place.candidates([*before, current])
    return [each for each in found if each.word == FILES or each.word.startswith(current)]
