"""Rank 0 of a job on several hosts listens on the interface by which Slurm's hosts know each other."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from toolkit.distributed.rendezvous.find_rank_0 import EVENT, where_to_listen
from toolkit.distributed.rendezvous.result import JoiningRank
from toolkit.distributed.secure import addresses
from toolkit.distributed.secure.addresses import addresses_towards
from toolkit.run.run_dir import RunDir
from toolkit.system.world import World

COMPUTE, STORAGE = "10.1.0.11", "10.2.0.11"
#: A host with a network of its own for files, and one for its containers.
OWN = ["127.0.0.1", STORAGE, COMPUTE, "172.17.0.1"]
NAMES = ("n1", "n2", "10.1.0.12")


def towards(
    names: Mapping[str, Sequence[str]], own: Sequence[str] = OWN, known_as: Sequence[str] = NAMES
) -> list[str]:
    """As on a host on which these names are known, and whose routes lead to the networks of its addresses."""

    def look_up(name: str) -> Sequence[str]:
        return names.get(name, [name] if name[0].isdigit() else [])

    def source_for(address: str) -> str:
        network = address.rpartition(".")[0]
        return next((each for each in own if each.rpartition(".")[0] == network), "")

    return addresses_towards(known_as, own, look_up, source_for)


def test_the_name_that_slurm_gives_this_host_decides() -> None:
    assert towards({"n1": [COMPUTE], "n2": ["10.2.0.12"]}) == [COMPUTE]


def test_of_several_interfaces_only_the_named_ones_are_used() -> None:
    assert towards({"n1": [STORAGE, COMPUTE]}) == [STORAGE, COMPUTE]


@pytest.mark.parametrize("own_name", [["127.0.1.1"], ["127.0.0.1"], []])
def test_if_the_own_name_is_loopback_or_unknown_the_route_to_another_host_decides(
    own_name: list[str],
) -> None:
    assert towards({"n1": own_name, "n2": ["10.1.0.12"]}) == [COMPUTE]


def test_where_no_name_is_known_the_address_of_the_launching_host_decides() -> None:
    assert towards({}) == [COMPUTE]
    assert towards({}, known_as=("n1", COMPUTE)) == [COMPUTE]


def test_where_names_lead_nowhere_nothing_follows() -> None:
    assert towards({"n1": ["192.0.2.1"], "n2": ["192.0.2.2"]}, known_as=("n1", "n2")) == []
    assert towards({}, known_as=()) == []


def test_a_host_without_ipv4_has_no_such_address() -> None:
    assert towards({"n1": ["127.0.1.1"], "n2": ["10.1.0.12"]}, own=["127.0.0.1"]) == []


def test_the_interface_that_the_user_has_chosen_for_gloo_is_the_only_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "none-such")
    assert addresses.known_addresses(["localhost", "127.0.0.1"]) == []


def joining(run: Path, nodes: int) -> JoiningRank:
    world = World(rank=0, size=nodes, local_rank=0, local_size=1, nodes=nodes, nonce="7.0.0")
    return JoiningRank(run=RunDir(run), world=world, secret=b"", deadline=0.0)


def recorded(run: Path) -> list[dict[str, Any]]:
    path = RunDir(run).events
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def test_rank_0_listens_at_the_known_address_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(addresses, "_every_address", lambda: OWN)
    assert where_to_listen(joining(tmp_path, 2), [COMPUTE]) == [COMPUTE]
    assert recorded(tmp_path) == []


def test_that_it_listens_on_every_address_is_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(addresses, "_every_address", lambda: OWN)
    assert {*where_to_listen(joining(tmp_path, 2), [])} == {*OWN} - {"127.0.0.1"}
    (line,) = recorded(tmp_path)
    assert (line["event"], {*line["addresses"]}) == (EVENT, {*OWN} - {"127.0.0.1"})


def test_on_one_machine_the_loopback_address_is_enough(tmp_path: Path) -> None:
    assert where_to_listen(joining(tmp_path, 1), [COMPUTE]) == ["127.0.0.1"]
    assert recorded(tmp_path) == []


def test_a_master_address_that_is_a_name_of_this_host_is_the_only_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(addresses, "_every_address", lambda: OWN)
    assert addresses.addresses_of(COMPUTE, 2) == [COMPUTE]
    assert addresses.addresses_of("127.0.0.1", 2) == ["127.0.0.1"]
    assert addresses.addresses_of("192.0.2.1", 2) == []
