"""Operations that repair white space."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from toolkit.workloads.spelling.data.texts.repairs import (
    DELETE,
    INSERT,
    KEEP,
    differs_in_space,
    repaired,
    repairs_of,
)

#: Words of a target.
_WORDS = st.lists(st.text("ab,é漢", min_size=1, max_size=5), min_size=1, max_size=6)


@given(_WORDS, st.randoms(use_true_random=False))
def test_repairs_turn_the_text_into_the_target(words: list[str], random: object) -> None:
    characters = "".join(words)
    text = "".join(c + (" " if random.random() < 0.3 else "") for c in characters).strip()  # type: ignore[attr-defined]
    target = " ".join(words)
    repairs = repairs_of(text, target)
    assert len(repairs) == len(text)
    assert repaired(text, repairs) == target
    assert (repairs == [KEEP] * len(text)) == (text == target)


@given(st.text("ab ", max_size=12), st.data())
def test_repairs_change_only_white_space(text: str, data: st.DataObject) -> None:
    repairs = data.draw(
        st.lists(st.sampled_from([KEEP, INSERT, DELETE]), min_size=len(text), max_size=len(text))
    )
    assert differs_in_space(text, repaired(text, repairs))
