"""The hint of a fault says what was probably meant."""

from __future__ import annotations

import pytest

from tests.toolkit.config.trees import put
from toolkit.config import check
from toolkit.config.library_arguments import NO_SCHEDULES


@pytest.mark.parametrize(
    "key, value, hint",
    [
        ("train.epoch", 1, "did you mean epochs?"),
        ("model.embeding_dim", 1, "did you mean embedding_dim?"),
        ("optimiser", {}, "did you mean optimizer?"),
        ("checkpoint.zzz", 1, "valid: every_steps, every_minutes, keep"),
        ("train.num_train_epochs", 1, "did you mean epochs?"),
        ("train.lr", 0.1, "did you mean optimizer.lr?"),
        ("lr", 0.1, "did you mean optimizer.lr?"),
        ("learning_rate", 0.1, "did you mean optimizer.lr?"),
        ("train.warmup_steps", 10, "did you mean lr_scheduler.warmup?"),
        ("train.eval_batch_size", 8, "did you mean evaluation.batch_size?"),
        ("train.embedding_dim", 8, "did you mean model.embedding_dim?"),
        ("train.seed", 1, "did you mean seed at the top?"),
        ("optimizer.name", "adam", "did you mean kind?"),
        ("optimizer", "adam", "optimizer: {kind: adam}"),
        ("model", "convolutions", "model: {kind: convolutions}"),
        ("optimizer", "lr:0.1", "a key needs a space after its colon"),
        ("train.device", "gpu", "did you mean cuda?"),
        ("train.device", "tpu", ""),
        ("train.precision", "16-mixed", "did you mean fp16?"),
        ("model.batch_size", 8, "did you mean train.batch_size or evaluation.batch_size?"),
        ("task.kind", "toy_text", "did you mean toy_texts?"),
        ("model.kind", "convolution", "did you mean convolutions?"),
        ("optimizer.kind", "adamv", "did you mean adam?"),
        ("optimizer.kind", "AdamW", "did you mean adamw?"),
        ("optimizer.kind", "SGD", "did you mean sgd?"),
        ("optimizer", "Adam", "optimizer: {kind: adam}"),
        ("lr_scheduler", "cosin", "lr_scheduler: {kind: cosine}"),
        ("evaluation.metric", "max:accuracy", "did you mean accuracy:max?"),
        ("evaluation.metric", "accuracy:most", ""),
        ("lr_scheduler.kind", "cosin", "did you mean cosine?"),
        *(("lr_scheduler.kind", kind, instead) for kind, instead in NO_SCHEDULES.items()),
        ("name", 1.5, "put it in quotes if text is meant"),
        ("train.deterministic", "yes", "write true or false"),
    ],
)
def test_a_hint_says_what_was_probably_meant(tree, faults, key, value, hint):
    (fault,) = faults(check, put(tree, key, value))
    assert (fault.key, fault.hint) == (key, hint)


def test_a_misspelt_key_is_not_missing_as_well(tree, faults):
    (fault,) = faults(check, put(tree, "resources.groups", [{"nodes": 1, "gpu": 2}]))
    assert (fault.key, fault.hint) == ("resources.groups.0.gpu", "did you mean gpus?")


def test_a_misspelt_key_hides_no_rule_over_the_key_that_is_meant(tree, faults):
    resources = {"groups": [{"nodes": 1, "gpus": 1}], "nodes": 2, "task_per_node": 2}
    found = {fault.key for fault in faults(check, put(tree, "resources", resources))}
    assert found == {"resources.task_per_node", "resources.nodes"}
