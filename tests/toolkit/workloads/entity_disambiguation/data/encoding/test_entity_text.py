"""The text that describes an entity."""

from __future__ import annotations

import dataclasses

import pytest

from toolkit.workloads.entity_disambiguation.config import EntityMentions
from toolkit.workloads.entity_disambiguation.data.encoding.entity_text import (
    bare_title,
    encode_entities,
    entity_parts,
)
from toolkit.workloads.entity_disambiguation.data.encoding.tokenizer import ENT_TYPE, MarkedTokenizer
from toolkit.workloads.entity_disambiguation.data.entities.database import EntityDatabase
from toolkit.workloads.entity_disambiguation.data.entities.profiles import Profile


@pytest.fixture(scope="module")
def entities() -> EntityDatabase:
    found = EntityDatabase()
    found.add(Profile(entity_id="sea", title="North Sea (water)"))
    found.add(
        Profile(
            entity_id="esk",
            title="Esk (river, Cumbria)",
            description="A river.",
            types={"wiki": ("river", "body of water"), "coarse": ("place", "river")},
            relations=(("mouth", "sea"), ("source", "gone")),
        )
    )
    return found


def text(entities: EntityDatabase, data: EntityMentions, qid: str = "esk") -> str:
    return " ".join(map(str, entity_parts(entities, qid, data)))


def test_title_types_relations_and_description_are_in_this_order(
    entities: EntityDatabase, data: EntityMentions
) -> None:
    assert text(entities, data) == (
        "Esk [ent_type] place [ent_type] river [ent_type] body of water "
        "[ent_kg] mouth North Sea [ent_kg] source [ent_desc] A river."
    )


def test_every_part_can_be_left_out(entities: EntityDatabase, data: EntityMentions) -> None:
    bare = dataclasses.replace(data, types=False, relations=False, description=False)
    assert text(entities, bare) == "Esk"
    assert text(entities, dataclasses.replace(bare, title=False, description=True)) == "[ent_desc] A river."
    assert text(entities, data, "sea") == "North Sea"


def test_only_the_named_type_systems_are_read(entities: EntityDatabase, data: EntityMentions) -> None:
    some = dataclasses.replace(data, type_systems=("wiki",), relations=False, description=False)
    assert text(entities, some) == "Esk [ent_type] river [ent_type] body of water"


def test_the_first_item_is_included_with_any_limit(entities: EntityDatabase, data: EntityMentions) -> None:
    tight = dataclasses.replace(data, max_type_words=1, max_relation_words=1, description=False)
    assert text(entities, tight) == "Esk [ent_type] place [ent_kg] mouth North Sea"
    two = dataclasses.replace(tight, max_type_words=2)
    assert "[ent_type] place [ent_type] river [ent_kg]" in text(entities, two)


def test_parentheses_are_removed_from_a_title_unless_nothing_is_left() -> None:
    assert bare_title("(river)") == "(river)"
    assert bare_title("Esk (a) of (b)") == "Esk of"


def test_long_entity_texts_are_cut_and_tokens_of_the_title_are_counted(
    entities: EntityDatabase, data: EntityMentions, tokenizer: MarkedTokenizer
) -> None:
    parts = entity_parts(entities, "esk", data)
    whole, short = (next(encode_entities([parts], tokenizer, most)) for most in (100, 8))
    title = tokenizer.encode(["Esk"])[0].tolist()
    assert whole.title == len(title)
    assert whole.tokens[1 : 1 + whole.title].tolist() == title
    assert whole.tokens[1 + whole.title] == tokenizer.markers[ENT_TYPE]
    assert short.tokens.tolist() == [*whole.tokens[:7], *tokenizer.after]
