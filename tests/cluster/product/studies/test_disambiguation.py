"""Entity disambiguation as a job of two hosts that is preempted on the way."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cluster.cluster import Cluster
from tests.cluster.product.user import User, curve, slowly, starts, weights
from tests.cluster.waiting import wait_until
from tests.toolkit.bert import write_bert
from toolkit.files import read_json
from toolkit.run.run_dir import RunDir

from .mentions import write_mentions

pytestmark = pytest.mark.slow

_EXPERIMENT = """\
name: ned
task: {{kind: entity_disambiguation, mask_mention: true}}
model: {{kind: bi_encoder, path: {folder}/bert}}
data:
  path: {folder}/sentences.jsonl
  entity_db: {folder}/entity_db
  tokenizer_path: {folder}/bert
  prepared_dir: {folder}/prepared
  eval_slices: [unif_NS_TL, unif_NPOP_all]
train: {{epochs: 4, batch_size: 16, log_per_epoch: 10, eval_per_epoch: 2, device: cpu}}
resources: {{cpus_per_task: 1}}
evaluation: {{metric: "accuracy/unif_NS_TL:max"}}
"""


@pytest.fixture
def reader(user: User) -> User:
    """A user with sentences about banks, bats and cranes, and a tiny BERT."""
    write_mentions(user.home)
    write_bert(user.home / "bert")
    return user


def test_a_preempted_job_of_two_hosts_ends_with_the_metrics_of_an_undisturbed_run(
    reader: User, cluster: Cluster
) -> None:
    text = _EXPERIMENT.format(folder=reader.home)
    (reader.home / "ned.yaml").write_text(text)
    undisturbed = RunDir(
        Path(reader.stk_json("run", "ned.yaml", "name=undisturbed", "--procs", "1")["run_dir"])
    )
    hosts = ("resources.nodes=2", "resources.gres=gpu:4", "resources.partition=preemptible")
    run, job_id = reader.submit("ned", *hosts, env=slowly(0.15))
    reader.wait_for_step(run)
    host = starts(run)[0]["hosts"][1]
    urgent = reader.sbatch("--partition=urgent", f"--nodelist={host}", "--gres=gpu:4", "--wrap=true")
    wait_until(
        lambda: cluster.job(job_id)["Restarts"] == "1", lambda: f"{cluster.job(job_id)}\n{reader.story(run)}"
    )
    assert reader.wait_for_end(urgent) == "COMPLETED"
    reader.wait_until_finished(run, job_id)
    assert [start["why"] for start in starts(run)] == ["preempted", "finished"]
    ours, theirs = read_json(run.result)["metrics"], read_json(undisturbed.result)["metrics"]
    for split in ("validation", "test"):
        assert ours[split] == theirs[split]
        assert {"accuracy/unif_NS_TL", "accuracy/unif_NPOP_all", "popularity"} <= ours[split].keys()
    assert curve(run) == curve(undisturbed)
    assert weights(run) == weights(undisturbed)
