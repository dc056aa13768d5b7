"""Rank 0 of a job on several hosts listens on the interface that Slurm's host names resolve to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from tests.toolkit.support.tiny import events
from toolkit.distributed.rendezvous.find_rank_0 import EVENT, where_to_listen
from toolkit.distributed.rendezvous.result import JoiningRank
from toolkit.distributed.secure import addresses
from toolkit.run.run_dir import RunDir
from toolkit.system.world import World

COMPUTE, STORAGE = "10.1.0.11", "10.2.0.11"
#: A host with a network of its own for files, and one for its containers.
OWN = ["127.0.0.1", STORAGE, COMPUTE, "172.17.0.1"]
NAMES = ("n1", "n2", "10.1.0.12")


def towards(
    names: Mapping[str, Sequence[str]], own: Sequence[str] = OWN, known_as: Sequence[str] = NAMES
) -> list[str]:
    """The result on a host that resolves these names and has routes to the networks of its addresses."""

    def look_up(name: str) -> Sequence[str]:
        return names.get(name, [name] if name[0].isdigit() else [])

    def source_for(address: str) -> str:
        network = address.rpartition(".")[0]
        return next((each for each in own if each.rpartition(".")[0] == network), "")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(addresses, "_every_address", lambda: own)
        patch.setattr(addresses, "_looked_up", look_up)
        patch.setattr(addresses, "_source_for", source_for)
        return addresses.known_addresses(known_as)


def test_all_addresses_of_this_hosts_slurm_name_are_used_and_no_others() -> None:
    assert towards({"n1": [COMPUTE], "n2": ["10.2.0.12"]}) == [COMPUTE]
    assert towards({"n1": [STORAGE, COMPUTE]}) == [STORAGE, COMPUTE]


@pytest.mark.parametrize("own_name", [["127.0.1.1"], ["127.0.0.1"], []])
def test_the_route_to_another_host_is_used_if_the_own_name_is_loopback_or_unknown(
    own_name: list[str],
) -> None:
    assert towards({"n1": own_name, "n2": ["10.1.0.12"]}) == [COMPUTE]


def test_the_route_to_the_launching_host_is_used_if_no_name_resolves() -> None:
    assert towards({}) == [COMPUTE]
    assert towards({}, known_as=("n1", COMPUTE)) == [COMPUTE]


def test_unreachable_names_and_loopback_alone_give_no_addresses() -> None:
    assert towards({"n1": ["192.0.2.1"], "n2": ["192.0.2.2"]}, known_as=("n1", "n2")) == []
    assert towards({}, known_as=()) == []
    assert towards({"n1": ["127.0.1.1"], "n2": ["10.1.0.12"]}, own=["127.0.0.1"]) == []


def test_an_unknown_gloo_interface_gives_no_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "none-such")
    assert addresses.known_addresses(["localhost", "127.0.0.1"]) == []


def joining(run: RunDir, nodes: int = 2) -> JoiningRank:
    """Rank 0 of a run on so many hosts."""
    world = World(rank=0, size=nodes, local_rank=0, local_size=1, nodes=nodes, nonce="7.0.0")
    return JoiningRank(run=run, world=world, secret=b"", deadline=0.0)


@pytest.mark.parametrize("nodes, expected", [(2, COMPUTE), (1, "127.0.0.1")], ids=["two hosts", "one host"])
def test_rank_0_listens_only_on_the_known_address_or_on_one_host_on_loopback(
    run: RunDir, monkeypatch: pytest.MonkeyPatch, nodes: int, expected: str
) -> None:
    monkeypatch.setattr(addresses, "_every_address", lambda: OWN)
    assert where_to_listen(joining(run, nodes), [COMPUTE]) == [expected]
    assert events(run, EVENT) == []


def test_listening_on_every_address_is_recorded(run: RunDir, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(addresses, "_every_address", lambda: OWN)
    assert {*where_to_listen(joining(run), [])} == {*OWN} - {"127.0.0.1"}
    (line,) = events(run, EVENT)
    assert {*line["addresses"]} == {*OWN} - {"127.0.0.1"}


def test_a_master_address_of_this_host_is_the_only_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(addresses, "_every_address", lambda: OWN)
    assert addresses.addresses_of(COMPUTE, 2) == [COMPUTE]
    assert addresses.addresses_of("127.0.0.1", 2) == ["127.0.0.1"]
    assert addresses.addresses_of("192.0.2.1", 2) == []
