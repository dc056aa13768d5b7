"""The same command on two machines makes one run. A machine that fails or is absent is named on the other."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from tests.cluster.waiting import wait_until
from tests.toolkit.support.tiny import assert_equal_runs, metrics_lines
from toolkit.files import read_json, read_json_lines
from toolkit.run.run_dir import RunDir, find_runs

from .two_machines import Pair, ended


def hosts(run: RunDir) -> list[tuple[int, str]]:
    """Local rank and host of each rank of the newest attempt, by rank."""
    nonce = list(read_json_lines(run.attempts))[-1]["nonce"]
    return [(rank["local_rank"], rank["host"]) for rank in read_json_lines(run.ranks(nonce))]


def has_begun(pair: Pair) -> bool:
    """Whether rank 0 has some steps behind it."""
    runs = list(find_runs(pair.first.home))
    return bool(runs and metrics_lines(runs[0]))


@pytest.mark.slow
def test_uneven_split_of_ranks_ends_with_the_bytes_of_one_process(
    machines: Pair, alone: RunDir, tmp_path: Path
) -> None:
    """Gradients are sums over what each rank has really seen, divided once by the count of all."""
    pair = machines.sharing(tmp_path)
    assert [code for code, _ in ended(pair.start(counts="3,1"))] == [0, 0]
    first, second = pair.first.name, pair.second.name
    assert hosts(pair.first.run) == [(0, first), (1, first), (2, first), (0, second)]
    assert_equal_runs(pair.first.run, alone)


@pytest.mark.slow
def test_machines_without_a_shared_folder_train_to_the_same_bytes(
    machines: Pair, alone: RunDir, tmp_path: Path
) -> None:
    pair = machines.apart(tmp_path)
    here, there = ended(pair.start())
    assert (here[0], there[0]) == (0, 0)
    assert f"the results are in the folder of node 0, on {pair.first.address}" in there[1]
    assert_equal_runs(pair.first.run, alone)
    assert not pair.second.run.result.exists()


@pytest.mark.slow
def test_json_hosts_file_gives_each_machine_its_ranks(machines: Pair, alone: RunDir, tmp_path: Path) -> None:
    """Each machine finds itself by its address; the first is where they meet."""
    pair = machines.sharing(tmp_path / "runs")
    world = tmp_path / "world.json"
    world.write_text(json.dumps({pair.first.address: 1, pair.second.address: 2}))
    command = ("run", pair.config, f"resources.hosts={world}")
    assert [code for code, _ in ended([each.start(*command) for each in (pair.first, pair.second)])] == [0, 0]
    assert hosts(pair.first.run) == [(0, pair.first.name), (0, pair.second.name), (1, pair.second.name)]
    steps = [line["step"] for line in metrics_lines(pair.first.run)]
    assert steps == [line["step"] for line in metrics_lines(alone)]


@pytest.mark.slow
def test_a_rank_killed_on_one_machine_ends_the_other_and_both_start_again(
    machines: Pair, alone: RunDir, tmp_path: Path
) -> None:
    pair = machines.apart(tmp_path)
    fault = "kill at=backward step=5 rank=1 attempt=1"
    here, there = ended(pair.start("checkpoint.every_steps=2", faults=("", fault)))
    assert (here[0], there[0]) == (0, 0)
    assert f"killed, rank 1 on {pair.second.name}" in here[1]
    assert "starting again" in here[1]
    first, second = read_json_lines(pair.first.run.attempts)
    assert (first["why"], second["why"], second["resumed"]) == ("killed", "finished", True)
    assert (first["rank"], first["host"]) == (1, pair.second.name)
    assert_equal_runs(pair.first.run, alone)


@pytest.mark.slow
def test_stopped_machine_stops_the_other_and_the_run_resumes_later(
    machines: Pair, alone: RunDir, tmp_path: Path
) -> None:
    pair = machines.apart(tmp_path)
    # Slow enough to be caught in the middle; what is computed is the same.
    slow = "slow 1.0 at=data attempt=1"
    started = pair.start(faults=(slow, slow))
    wait_until(lambda: has_begun(pair), lambda: "no step")
    started[1].send_signal(signal.SIGTERM)
    assert [code for code, _ in ended(started)] == [130, 130]
    assert pair.first.run.checkpoint_steps()
    assert [code for code, _ in ended(pair.start(counts="1,3"))] == [0, 0]
    assert_equal_runs(pair.first.run, alone)


@pytest.mark.slow
def test_lost_machine_is_named_and_the_other_does_not_continue_alone(machines: Pair, tmp_path: Path) -> None:
    pair = machines.apart(tmp_path)
    started = pair.start("train.epochs=5000")
    wait_until(lambda: has_begun(pair), lambda: "no step")
    pair.first.network.cut(pair.second.name)
    try:
        (code, output), _ = ended(started)
    finally:
        pair.first.network.restore(pair.second.name)
    assert code == 4
    assert f"node 1 (rank 1) on {pair.second.name} was lost" in output
    assert "starting again" not in output
    assert len(list(read_json_lines(pair.first.run.attempts))) == 1
    assert read_json(pair.first.run.failure)["class"] in ("node_failure", "peer_lost")


# -- machines that do not come together


def test_absent_second_machine_is_named(machines: Pair, tmp_path: Path) -> None:
    pair = machines.apart(tmp_path)
    ((code, output),) = ended([pair.start_one(0, "train.rendezvous_timeout_s=1")])
    assert code == 4
    assert "1 of 2 machines did not connect" in output
    assert "node 1 (rank 1)" in output
    assert not pair.first.home.exists()


def test_absent_first_machine_is_named(machines: Pair, tmp_path: Path) -> None:
    pair = machines.apart(tmp_path)
    ((code, output),) = ended([pair.start_one(1, "train.rendezvous_timeout_s=1")])
    assert code == 4
    assert f"node 1 on {pair.second.name} could not reach node 0 at {pair.first.address} port 29500" in output
    assert not pair.second.home.exists()
