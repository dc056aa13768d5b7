"""The graph of tokens and words, and attention along its edges."""

from __future__ import annotations

import itertools

import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.toolkit.workloads.spelling.models.making import LONG, SHORT, Text, detection_batch, scored, small
from toolkit.workloads.spelling.models.batches import DetectionBatch
from toolkit.workloads.spelling.models.graph import Graph, build_graph, fully_connected, pairs
from toolkit.workloads.spelling.models.graph_network import complete_attention, edge_attention

texts = st.lists(
    st.lists(
        st.lists(st.lists(st.integers(3, 39), min_size=1, max_size=3), min_size=1, max_size=2),
        min_size=1,
        max_size=4,
    ),
    min_size=1,
    max_size=3,
)


def edges_of(every: list[Text], between_tokens: bool) -> dict[str, set[tuple[int, int]]]:
    """Return the edges of a batch by looking at all pairs of nodes."""
    pieces = [(row, *piece) for row, text in enumerate(every) for word in text for piece in word]
    tokens = [(place, piece[0]) for place, piece in enumerate(pieces) for _ in piece[1:]]
    count = len(tokens)
    within = {
        (a, b)
        for a, b in itertools.permutations(range(count), 2)
        if tokens[a][int(between_tokens)] == tokens[b][int(between_tokens)]
    }
    between = {
        (a + count, b + count)
        for a, b in itertools.permutations(range(len(pieces)), 2)
        if pieces[a][0] == pieces[b][0]
    }
    return {
        "within": within,
        "between": between,
        "inside": {(place, count + token[0]) for place, token in enumerate(tokens)},
    }


def graph_of(batch: DetectionBatch, *, between_tokens: bool = False) -> Graph:
    return build_graph(batch.pieces, batch.words, between_pieces=True, between_tokens=between_tokens)


@given(texts, st.booleans())
def test_edges_connect_the_nodes_that_belong_together(every: list[Text], tokens: bool) -> None:
    graph = graph_of(detection_batch(every), between_tokens=tokens)
    complete = {name: pairs(part.real.sum(1)) + part.first for name, part in graph.complete.items()}
    written = {**graph.edges, **complete}
    found = {name: list(map(tuple, edges.T.tolist())) for name, edges in written.items()}
    assert {name: set(edges) for name, edges in found.items()} == edges_of(every, tokens)
    assert all(len(edges) == len(set(edges)) for edges in found.values())


def test_attention_along_all_edges_equals_that_of_torch() -> None:
    torch.manual_seed(0)
    q, k, v = torch.randn(3, 5, 8).unbind(0)
    every = torch.cartesian_prod(torch.arange(5), torch.arange(5)).T.flip(0)
    found = edge_attention(q, k, v, every, heads=2)
    heads = [each.unflatten(-1, (2, 4)).transpose(0, 1) for each in (q, k, v)]
    wanted = torch.nn.functional.scaled_dot_product_attention(*heads)
    torch.testing.assert_close(found, wanted.transpose(0, 1).flatten(1))


def test_attention_of_fully_connected_nodes_equals_attention_along_edges() -> None:
    torch.manual_seed(0)
    sizes = torch.tensor([3, 0, 1, 2, 0])
    part = fully_connected(sizes, first=2)
    q, k, v = torch.randn(3, 9, 8).unbind(0)
    edges = pairs(sizes) + 2
    assert bool((edges[1].diff() >= 0).all())
    wanted = edge_attention(q, k, v, edges, heads=2)
    torch.testing.assert_close(complete_attention(q, k, v, part, heads=2), wanted)
    assert not wanted[5].any(), "a node that is alone in its text reads nothing"


def test_words_attend_to_each_other_only_if_they_are_connected() -> None:
    other: Text = [LONG[0], [[30, 11, 12], [13], [14, 15]], *LONG[2:]]
    for connected in (True, False):
        torch.manual_seed(0)
        model = small("graph", word_fully_connected=connected).eval()
        one, two = (scored(model, detection_batch([text, SHORT])) for text in (LONG, other))
        moved = (one - two).abs().amax(-1) > 1e-6
        assert moved.tolist() == [[connected, True, connected, connected], [False] * 4]
