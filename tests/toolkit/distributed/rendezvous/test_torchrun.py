"""Ranks that torchrun has started meet beside its store."""

from __future__ import annotations

import json
import socket
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from torch.distributed import TCPStore  # type: ignore[attr-defined]

from tests.support.patience import PATIENCE_S
from tests.toolkit.distributed.rendezvous.starting import SHORT_S
from tests.toolkit.support.ranks import worlds
from toolkit.distributed.rendezvous import Rendezvous, meet
from toolkit.distributed.rendezvous.network import publish
from toolkit.distributed.rendezvous.result import Place
from toolkit.errors import RendezvousError
from toolkit.run.run_dir import RunDir


def beside_torchrun(
    pool: ThreadPoolExecutor, runs: list[RunDir], port: int, **environ: str
) -> list[Future[Rendezvous]]:
    place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "TORCHELASTIC_USE_AGENT_STORE": "True"}
    ranks = worlds(len(runs), "torchrun-29500.0")
    return [
        pool.submit(meet, run, world, PATIENCE_S, "env", {**place, **environ})
        for run, world in zip(runs, ranks, strict=True)
    ]


@pytest.fixture
def agent() -> Any:
    """The store of torchrun's agent, which everybody may write."""
    return TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)


def test_ranks_of_torchrun_meet_beside_its_store(
    run: RunDir, threads: ThreadPoolExecutor, agent: Any
) -> None:
    keys = agent.num_keys()
    joined = [each.result() for each in beside_torchrun(threads, [run, run], agent.port)]
    joined[0].store.set("greeting", "hello")
    assert joined[1].store.get("greeting") == b"hello"
    assert {each.world.master_port for each in joined} == {agent.port}
    assert agent.num_keys() == keys


def test_torchrun_may_reuse_the_name_of_a_killed_attempt(
    run: RunDir, threads: ThreadPoolExecutor, agent: Any
) -> None:
    """Its publication is still there, and no process answers."""
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        place = Place(host="node17", addresses=["127.0.0.1"], port=silent.getsockname()[1])
        publish(run.rendezvous("torchrun-29500.0"), place)
        for each in beside_torchrun(threads, [run, run], agent.port):
            assert each.result().world.size == 2


def test_ranks_of_torchrun_without_a_shared_folder_need_a_given_secret(
    tmp_path: Path, threads: ThreadPoolExecutor, agent: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "lo")
    runs = [RunDir(tmp_path / str(number)) for number in range(2)]
    given = tmp_path / "given"
    given.write_text("a secret that was copied by hand")
    given.chmod(0o600)
    # A stranger is faster: what it says is not signed.
    agent.set("stk/torchrun-29500.0/place", json.dumps({"place": '{"host": "evil"}', "proof": "0" * 64}))
    for each in beside_torchrun(threads, runs, agent.port, STK_SECRET_FILE=str(given)):
        assert each.result().world.size == 2
    world = replace(worlds(2, "torchrun-29500.0")[1], master_addr="127.0.0.1", master_port=agent.port)
    place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1", "TORCHELASTIC_USE_AGENT_STORE": "True"}
    with pytest.raises(RendezvousError, match=r"found no .*STK_SECRET_FILE"):
        meet(RunDir(tmp_path / "2"), world, SHORT_S, "auto", place)
