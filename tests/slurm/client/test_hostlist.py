"""Host lists mean what `scontrol show hostnames` says they mean."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slurm.client.hostlist import expand, expand_counts
from toolkit.errors import UserError


@pytest.mark.parametrize(
    "text, hosts",
    [
        ("", []),
        ("login", ["login"]),
        ("a1,b2", ["a1", "b2"]),
        ("b,a,b", ["b", "a", "b"]),
        (",a,,b,", ["a", "b"]),
        ("a b\tc\nd", ["a", "b", "c", "d"]),
        ("n[1,3,2]", ["n1", "n3", "n2"]),
        ("n[9-11]", ["n9", "n10", "n11"]),
        ("n[09-11]", ["n09", "n10", "n11"]),
        ("n[099-101]", ["n099", "n100", "n101"]),
        ("n[1-010]", [f"n{number}" for number in range(1, 11)]),
        ("n[007,9-10]", ["n007", "n9", "n10"]),
        ("[1-2],5", ["1", "2", "5"]),
        ("a[1-2][3-4]", ["a13", "a14", "a23", "a24"]),
        ("rack[1-2]node[01-02],x", ["rack1node01", "rack1node02", "rack2node01", "rack2node02", "x"]),
        ("c[1-2]-ib", ["c1-ib", "c2-ib"]),
        ("a[1-2]b[1-2].org,z", ["a1b1.org", "a1b2.org", "a2b1.org", "a2b2.org", "z"]),
    ],
)
def test_a_host_list_expands_in_its_order(text: str, hosts: list[str]) -> None:
    assert expand(text) == hosts


@pytest.mark.parametrize(
    "text, position, problem",
    [
        ("a[1-2", 2, "never closed"),
        ("a,b[1", 4, "never closed"),
        ("a1]", 3, "without"),
        ("a[1]]", 5, "without"),
        ("a[[1-2]]", 3, "inside brackets"),
        ("a[]", 3, "'' is not a number"),
        ("a[1,,2]", 5, "'' is not a number"),
        ("a[1 ,2]", 3, "'1 ' is not a number"),
        ("a[x]", 3, "'x' is not a number"),
        ("a[1-]", 3, "'1-' is not a number"),
        ("a[1,5-3]", 5, "runs backwards"),
        ("a[0-65536]", 3, "more than 65536"),
        ("a[١]", 3, "is not a number"),
    ],
)
def test_malformed_text_is_refused_at_its_position(text: str, position: int, problem: str) -> None:
    with pytest.raises(UserError, match=problem) as refusal:
        expand(text)
    assert f"{text!r}, character {position}:" in str(refusal.value)


def test_a_range_may_hold_as_many_hosts_as_slurm_allows() -> None:
    assert len(expand("a[0-65535]")) == 65536


_LETTERS = st.text("abcdeXYZ-._", min_size=1, max_size=6).map(lambda text: f"n{text}")
_PREFIX = _LETTERS | st.builds("{}{}".format, _LETTERS, st.integers(0, 120))


@st.composite
def _ranges(draw: st.DrawFn) -> str:
    low = draw(st.integers(0, 1100))
    width = draw(st.integers(0, 5))
    if draw(st.booleans()):
        return f"{low:0{width}d}"
    return f"{low:0{width}d}-{low + draw(st.integers(0, 4)):0{draw(st.integers(0, 5))}d}"


_BRACKET = st.lists(_ranges(), min_size=1, max_size=3).map(lambda parts: f"[{','.join(parts)}]")


@st.composite
def _entries(draw: st.DrawFn) -> str:
    """An entry that ends in a bracket or has none: scontrol refuses text after the last bracket."""
    parts = [draw(_PREFIX)]
    for number in range(draw(st.integers(0, 3))):
        parts += [draw(st.sampled_from(["", "-", "rack", "n"])) if number else "", draw(_BRACKET)]
    return "".join(parts)


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What scontrol needs to answer without a cluster."""
    if shutil.which("scontrol") is None:
        # CI installs it, and must not pass without having asked it.
        give_up = pytest.fail if os.environ.get("CI") else pytest.skip
        give_up("scontrol is not installed")
    conf: Path = tmp_path_factory.mktemp("slurm") / "slurm.conf"
    conf.write_text("ClusterName=none\nSlurmctldHost=localhost\nNodeName=none\n")
    return {"PATH": os.environ["PATH"], "SLURM_CONF": str(conf)}


@settings(max_examples=200, deadline=None)
@given(st.lists(_entries(), min_size=1, max_size=4).map(",".join))
def test_a_host_list_expands_as_scontrol_expands_it(environment: dict[str, str], text: str) -> None:
    shown = subprocess.run(
        ["scontrol", "show", "hostnames", text], env=environment, capture_output=True, text=True, check=True
    )
    assert expand(text) == shown.stdout.split()


@given(st.text("ab1[]-,0 ", max_size=12))
def test_any_text_is_either_expanded_or_refused(text: str) -> None:
    try:
        hosts = expand(text)
    except UserError:
        return
    assert all(host and not set(host) & set("[], ") for host in hosts)


@pytest.mark.parametrize(
    "text, counts",
    [("4", [4]), ("2(x3),1", [2, 2, 2, 1]), ("1(x2),3", [1, 1, 3]), ("4,2", [4, 2]), ("8(x1)", [8])],
)
def test_counts_expand(text: str, counts: list[int]) -> None:
    assert expand_counts(text) == counts


@pytest.mark.parametrize(
    "text, position", [("", 1), ("2,", 3), ("2(x3", 1), ("1,x", 3), ("2(x3)1", 1), ("-1", 1)]
)
def test_malformed_counts_are_refused_at_their_position(text: str, position: int) -> None:
    with pytest.raises(UserError, match=f"character {position}:"):
        expand_counts(text)
