"""How often training has seen an entity as the gold of a mention."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from toolkit.entities.sentences import UNKNOWN, Sentence


@dataclass(frozen=True, slots=True)
class GoldCounts:
    """Occurrences of golds in training, and of golds by alias; with weak labels or without.

    Its size is that of the entities seen, not of the sentences.
    """

    entities: Counter[str] = field(default_factory=Counter)
    aliases: dict[str, Counter[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, sentences: Iterable[Sentence], *, count_weak: bool = True) -> GoldCounts:
        """Count the golds that are known; weak labels too, unless they are left out."""
        counts = cls()
        for sentence in sentences:
            counts.add(sentence, count_weak=count_weak)
        return counts

    def add(self, sentence: Sentence, *, count_weak: bool = True) -> None:
        """Count the golds of one more sentence."""
        for mention in sentence.mentions:
            if mention.gold != UNKNOWN and (mention.is_gold or count_weak):
                self.entities[mention.gold] += 1
                self.aliases.setdefault(mention.alias, Counter())[mention.gold] += 1
