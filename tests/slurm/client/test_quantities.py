"""Memory and generic resources in Slurm's notation."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm.client.quantities import format_mb, gres_of_host, gres_of_request, parse_mb
from toolkit.errors import UserError


@pytest.mark.parametrize(
    "text, megabytes",
    [
        ("", 0),
        ("0", 0),
        ("100", 100),
        ("100M", 100),
        ("16G", 16384),
        ("16gb", 16384),
        ("1T", 1024**2),
        ("1K", 1),
    ],
)
def test_memory_is_read_in_megabytes(text: str, megabytes: int) -> None:
    assert parse_mb(text) == megabytes


@pytest.mark.parametrize("text", ["16 G", "G", "1.5G", "-1", "16X"])
def test_invalid_memory_notation_is_refused(text: str) -> None:
    with pytest.raises(UserError, match="amount of memory"):
        parse_mb(text)


@given(st.integers(1, 10**8))
def test_formatted_memory_reads_back(megabytes: int) -> None:
    assert parse_mb(format_mb(megabytes)) == megabytes


@pytest.mark.parametrize(
    "text, wanted",
    [
        ("", {}),
        ("none", {}),
        ("gpu", {("gpu", ""): 1}),
        ("gpu:2", {("gpu", ""): 2}),
        ("gpu:0", {}),
        ("gpu:a100", {("gpu", "a100"): 1}),
        ("gpu:a100:4", {("gpu", "a100"): 4}),
        ("gres:gpu:2", {("gpu", ""): 2}),
        ("gres/gpu:2", {("gpu", ""): 2}),
        ("gpu:a100:1, gpu:v100:2,shard:1K", {("gpu", "a100"): 1, ("gpu", "v100"): 2, ("shard", ""): 1024}),
        ("gpu:a:b:c", {}),
    ],
)
def test_requested_gres_are_counted_by_name_and_type(text: str, wanted: dict[tuple[str, str], int]) -> None:
    assert gres_of_request(text) == wanted


@pytest.mark.parametrize(
    "text, wanted",
    [
        ("2", {("gpu", ""): 2}),
        ("a100:2", {("gpu", "a100"): 2}),
        ("a100", {("gpu", "a100"): 1}),
        ("a100:1,v100:2", {("gpu", "a100"): 1, ("gpu", "v100"): 2}),
        ("", {}),
    ],
)
def test_requested_gpus_need_no_name(text: str, wanted: dict[tuple[str, str], int]) -> None:
    assert gres_of_request(text, "gpu") == wanted


@pytest.mark.parametrize(
    "text, offered",
    [
        ("", {}),
        ("gpu:2", {("gpu", ""): 2}),
        ("gpu:a100:4(S:0-1)", {("gpu", "a100"): 4, ("gpu", ""): 4}),
        (
            "gpu:a100:2(S:0,2),gpu:v100:1(S:1),shard:8",
            {("gpu", "a100"): 2, ("gpu", "v100"): 1, ("gpu", ""): 3, ("shard", ""): 8},
        ),
        ("craynetwork:no_consume:4", {("craynetwork", ""): 4}),
    ],
)
def test_offered_gres_are_counted_by_type_and_in_total(
    text: str, offered: dict[tuple[str, str], int]
) -> None:
    assert gres_of_host(text) == offered
