from __future__ import annotations

import json
import sys
import unicodedata
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.toolkit.report.report_folders import (
    START_S,
    write_attempts,
    write_config,
    write_failure,
    write_metrics,
    write_result,
)
from toolkit.errors import DataError, UserError
from toolkit.files import append_json_line, write_json
from toolkit.registry import metric_of, task_kinds
from toolkit.report import formats
from toolkit.report.model import Best, goal_of, main_metric, score_names, task_kind, to_json
from toolkit.report.run.summary import summarize
from toolkit.report.run.tables import scores_table
from toolkit.report.run.text import headline
from toolkit.report.task_report import TaskReport
from toolkit.run.run_dir import RunDir


def test_a_new_run_is_pending_and_empty(new_run: RunDir) -> None:
    summary = summarize(new_run)
    assert summary.state == "pending"
    assert summary.config["optimizer"] == {"lr": 0.001}
    assert (summary.step, summary.best, summary.seconds, summary.as_of) == (None, None, None, None)
    assert not summary.curves
    assert not summary.attempts
    assert summarize(RunDir(new_run.path / "nothing")).state == "pending"


@pytest.mark.parametrize(
    "code", ["", "raise ValueError('binary incompatibility')", "undefined", "raise SystemExit"]
)
def test_report_code_of_a_task_that_cannot_be_imported_is_named(
    code: str, new_run: RunDir, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "odd_report.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "odd_report", raising=False)
    kind = task_kind(summarize(new_run).config)
    row = replace(task_kinds()[kind], report="odd_report:Missing")
    monkeypatch.setattr("toolkit.report.task_report.task_kinds", lambda: {kind: row})
    with pytest.raises(UserError, match="odd_report:Missing"):
        summarize(new_run)


def test_an_unfinished_run_is_summarized_from_its_metrics(new_run: RunDir) -> None:
    """The last attempt has no end, so it counts up to the newest line: 150 s and 100 s."""
    write_metrics(new_run)
    write_attempts(new_run, finished=False)
    summary = summarize(new_run)
    assert summary.state == "unfinished"
    assert (summary.step, summary.epoch) == (300, 3.0)
    assert summary.as_of == START_S + 300
    assert summary.seconds == 250
    assert summary.scores["validation"]["accuracy"] == pytest.approx(0.75)
    assert summary.best == Best(step=200, metric="accuracy", value=1.2 - 0.4)


def test_a_stopped_run_has_the_steps_that_it_saved_after_its_last_metrics(new_run: RunDir) -> None:
    """As in `stk status`."""
    write_metrics(new_run)
    line = {"attempt": 1, "nonce": "a", "time_start": START_S, "first_step": 0}
    append_json_line(new_run.attempts, {**line, "time_end": START_S + 400, "last_step": 312})
    write_json(new_run.progress, {"step": 310, "epoch": 3.1})
    assert (summarize(new_run).step, summarize(new_run).epoch) == (312, 3.1)
    new_run.progress.write_text("{cut")
    assert (summarize(new_run).step, summarize(new_run).epoch) == (312, 3.0)


def test_a_killed_last_attempt_ends_at_its_last_heartbeat(new_run: RunDir) -> None:
    line = {"attempt": 1, "nonce": "a", "time_start": START_S, "first_step": None}
    append_json_line(new_run.attempts, line)
    heartbeat = new_run.heartbeat("a", 0)
    heartbeat.parent.mkdir(parents=True, exist_ok=True)
    write_json(heartbeat, {"rank": 0, "phase": "program", "time": START_S + 30})
    summary = summarize(new_run)
    assert (summary.goodput.starting, summary.seconds) == (30, 30)


def test_scores_of_a_command_name_their_step_unless_it_is_the_last(new_run: RunDir) -> None:
    new_run.config.write_text("name: mine\n")
    for step, split in ((8, "validation"), (12, "train"), (12, "test")):
        append_json_line(new_run.metrics, {"step": step, "split": split, "loss": 1.0})
    assert scores_table(summarize(new_run)).head == ("metric", "train", "validation, step 8", "test")


@pytest.mark.parametrize("more, step", [({}, "step 4"), ({"accuracy": 0.5}, "of several steps")])
def test_scores_of_the_best_checkpoint_of_a_command_name_its_step(
    new_run: RunDir, more: dict[str, float], step: str
) -> None:
    new_run.config.write_text("name: mine\n")
    for line in ({"step": 4, "loss": 1.0}, {"step": 8, "loss": 2.0, **more}):
        append_json_line(new_run.metrics, {"split": "validation", **line})
    new_run.checkpoint(4).mkdir(parents=True)
    new_run.best.symlink_to(new_run.checkpoint(4).name)
    marked = {"step": 4, "validation": ["loss"]}
    scores = {"validation": {"loss": 1.0, **more}}
    write_json(new_run.result, {"step": 8, "best": {}, "best_checkpoint": marked, "metrics": scores})
    assert scores_table(summarize(new_run)).head == ("metric", f"validation, {step}")


def test_the_time_of_a_killed_attempt_ends_at_its_last_line(new_run: RunDir) -> None:
    """It wrote its last line after 40 s; the next one started an hour later and took 20 s."""
    for number, start in enumerate((START_S, START_S + 3600)):
        append_json_line(new_run.attempts, {"attempt": number, "time_start": start, "first_step": 0})
    append_json_line(new_run.attempts, {"attempt": 1, "time_end": START_S + 3620, "why": "preempted"})
    for step, time in ((1, START_S + 40), (2, START_S + 3610)):
        append_json_line(new_run.metrics, {"time": time, "step": step, "split": "train", "loss": 1.0})
    assert summarize(new_run).seconds == 60


@pytest.mark.parametrize(
    "metric, values, step",
    [
        ("loss:min", [0.5, 0.4, 0.4], 2),
        ("accuracy:max", [0.8, 0.9, 0.9], 2),
        ("loss:min", [float("nan"), 0.7, 0.8], 2),
    ],
)
def test_the_best_is_the_first_of_equals_and_never_nan(
    new_run: RunDir, metric: str, values: list[float], step: int
) -> None:
    write_config(new_run, metric=metric)
    name = metric.partition(":")[0]
    for position, value in enumerate(values, start=1):
        append_json_line(new_run.metrics, {"step": position, "split": "validation", name: value})
    best = summarize(new_run).best
    assert (best.metric, best.step) == (name, step)


def test_the_best_of_equal_scores_has_the_lowest_loss(new_run: RunDir) -> None:
    write_config(new_run, metric="accuracy:max")
    for step, accuracy, loss in ((1, 0.8, 0.5), (2, 0.8, 0.2), (3, 0.8, 0.4), (4, 0.7, 0.1)):
        line = {"step": step, "split": "validation", "accuracy": accuracy, "loss": loss}
        append_json_line(new_run.metrics, line)
    best = summarize(new_run).best
    assert best.step == 2


@pytest.mark.parametrize(
    "linked, best, shown",
    [
        (2, Best(step=2, metric="loss", value=0.4), "validation loss 0.4000 at step 2"),
        (4, Best(step=4, metric="loss", value=None), "step 4"),
        (
            None,
            Best(step=3, metric="loss", value=0.3, is_marked=False),
            "lowest validation loss 0.3000 at step 3",
        ),
    ],
)
def test_a_program_that_has_no_evaluation_here_marks_its_best_checkpoint_itself(
    new_run: RunDir, linked: int | None, best: Best, shown: str
) -> None:
    new_run.config.write_text("name: own\ntask:\n  kind: own\n")
    for step, loss in ((1, 0.5), (2, 0.4), (3, 0.3)):
        append_json_line(new_run.metrics, {"step": step, "split": "validation", "loss": loss})
    if linked is not None:
        new_run.checkpoint(linked).mkdir(parents=True)
        new_run.best.symlink_to(new_run.checkpoint(linked).name)
    summary = summarize(new_run)
    assert (summary.best, dict(headline(summary))["best"]) == (best, shown)


def test_the_later_line_of_a_step_counts_and_steps_are_sorted(new_run: RunDir) -> None:
    for step, loss in ((10, 1.0), (20, 0.9), (30, 0.8), (20, 0.5)):
        append_json_line(new_run.metrics, {"step": step, "split": "train", "loss": loss})
    assert summarize(new_run).points("train", "loss") == ([10, 20, 30], [1.0, 0.5, 0.8])


def test_lines_with_different_metrics_become_columns_of_one_length(new_run: RunDir) -> None:
    append_json_line(new_run.metrics, {"step": 1, "split": "train", "loss": 1.0})
    append_json_line(new_run.metrics, {"step": 2, "split": "train", "loss": 0.9, "grad_norm": 3.0})
    curves = summarize(new_run).curves["train"]
    assert curves == {"step": (1, 2), "loss": (1.0, 0.9), "grad_norm": (None, 3.0)}


def test_lines_of_one_step_are_joined(new_run: RunDir) -> None:
    for scores in ({"a_loss": 1.0, "accuracy": 0.1}, {"b_loss": 2.0, "accuracy": 0.5}):
        append_json_line(new_run.metrics, {"step": 1, "split": "validation", **scores})
    curves = summarize(new_run).curves["validation"]
    assert curves == {"step": (1,), "a_loss": (1.0,), "accuracy": (0.5,), "b_loss": (2.0,)}


def test_scores_are_of_the_newest_line_that_has_them(new_run: RunDir) -> None:
    """Null stands for a value that was not finite."""
    lines = ({"bleu": 0.3, "loss": 1.0}, {"bleu": 0.4, "rouge": None}, {"loss": None})
    for step, scores in enumerate(lines):
        append_json_line(new_run.metrics, {"step": step, "split": "validation"} | scores)
    assert summarize(new_run).scores["validation"] == {"bleu": 0.4, "loss": None, "rouge": None}


def test_splits_are_ordered_train_validation_test(new_run: RunDir) -> None:
    for split in ("test", "extra", "validation", "train"):
        append_json_line(new_run.metrics, {"step": 1, "split": split, "loss": 1.0})
    summary = summarize(new_run)
    expected = ["train", "validation", "test", "extra"]
    assert list(summary.curves) == list(summary.scores) == expected


@pytest.mark.parametrize("failed_at_s, state", [(210, "failed"), (150, "unfinished")])
def test_only_a_failure_of_the_last_attempt_is_reported(
    new_run: RunDir, failed_at_s: int, state: str
) -> None:
    write_attempts(new_run, finished=False)
    append_json_line(new_run.events, {"time": START_S + failed_at_s, "event": "failure", "step": 150})
    write_failure(new_run)
    summary = summarize(new_run)
    assert (summary.state, summary.failure is not None) == (state, state == "failed")


def test_a_failure_file_of_a_finished_run_is_ignored(finished_run: RunDir) -> None:
    write_failure(finished_run)
    summary = summarize(finished_run)
    assert (summary.state, summary.failure) == ("finished", None)


def test_time_of_a_finished_run_is_that_of_its_result(finished_run: RunDir) -> None:
    """Its attempts took 300 s together."""
    assert summarize(finished_run).seconds == 300.5


@pytest.mark.parametrize("name", ["config", "result", "failure"])
@pytest.mark.parametrize("text, problem", [("{broken: [", ""), ("[1, 2]", ".*a list instead of keys")])
def test_a_damaged_file_is_named(new_run: RunDir, name: str, text: str, problem: str) -> None:
    path: Path = getattr(new_run, name)
    path.write_text(text)
    with pytest.raises(DataError, match=path.name + problem):
        summarize(new_run)


def test_the_summary_is_strict_json_even_after_divergence(finished_run: RunDir) -> None:
    append_json_line(
        finished_run.metrics, {"step": 310, "split": "train", "loss": float("nan"), "lr": float("inf")}
    )
    document = json.loads(json.dumps(to_json(summarize(finished_run)), allow_nan=False))
    assert document["curves"]["train"]["loss"][-1] is None
    assert document["curves"]["train"]["loss"][0] == pytest.approx(0.7, abs=0.05)
    assert document["labels"] == {"test": ["negative", "positive"]}
    assert document["best"] == {"step": 200, "metric": "accuracy", "value": 0.8, "is_marked": True}


def test_a_task_replaces_no_other_part_of_the_summary(finished_run: RunDir) -> None:
    class OwnReport(TaskReport):
        def to_json(self) -> dict[str, Any]:
            return {"usage": "heavy", "starts": 0, "told": 1}

    summary = summarize(finished_run)
    own = to_json(replace(summary, own=OwnReport()))
    assert own == {**to_json(replace(summary, own=None)), "told": 1}


def test_score_names_exclude_metrics_that_do_not_measure_quality(finished_run: RunDir) -> None:
    names = score_names([summarize(finished_run)])
    assert names == ["loss", "accuracy", "macro_precision", "macro_recall", "macro_f1"]


def test_metrics_with_a_slash_are_scores_unless_the_task_reports_them(new_run: RunDir) -> None:
    class SliceReport(TaskReport):
        shows_parts = True

    append_json_line(new_run.metrics, {"step": 1, "split": "test", "loss": 0.5, "loss/ce": 0.4})
    summary = summarize(new_run)
    assert score_names([summary]) == ["loss", "loss/ce"]
    assert score_names([replace(summary, own=None)]) == ["loss", "loss/ce"]
    assert score_names([replace(summary, own=SliceReport())]) == ["loss"]


@pytest.mark.parametrize(
    "metric, expected", [("macro_f1:max", "macro_f1"), ("loss:min", "accuracy"), ("bleu:max", "accuracy")]
)
def test_the_main_metric_is_the_one_that_selects_the_best_or_the_first(
    new_run: RunDir, metric: str, expected: str
) -> None:
    write_config(new_run, metric=metric)
    write_result(new_run)
    assert main_metric(summarize(new_run)) == expected


def test_a_metric_of_the_training_alone_is_not_the_main_one_beside_others(new_run: RunDir) -> None:
    append_json_line(new_run.metrics, {"step": 1, "split": "train", "loss": 1.0, "gpu_mem": 7.0})
    assert main_metric(summarize(new_run)) == "gpu_mem"
    append_json_line(new_run.metrics, {"step": 1, "split": "validation", "loss": 1.0, "bleu": 0.3})
    assert main_metric(summarize(new_run)) == "bleu"


@given(st.text())
def test_cleaned_text_is_encodable_and_has_no_control_characters(text: str) -> None:
    cleaned = formats.clean(text)
    assert cleaned == formats.clean(cleaned)
    assert cleaned.encode("utf-8").decode("utf-8") == cleaned
    assert not any(unicodedata.category(sign) == "Cc" for sign in cleaned if sign not in "\n\t")
    assert not any(unicodedata.bidirectional(sign) in ("RLO", "LRO", "RLE", "LRE") for sign in cleaned)


def test_cleaning_reaches_every_string_and_keeps_the_rest() -> None:
    assert formats.clean({"a\x1b": ["\ud800", 1, None, {"b": "ü\n"}]}) == {"a␛": ["?", 1, None, {"b": "ü\n"}]}


@given(st.text(), st.integers(2, 50))
def test_one_line_returns_one_line_within_the_width(text: str, width: int) -> None:
    line = formats.one_line(formats.clean(text), width)
    assert len(line) <= width
    assert "\n" not in line
    assert "\t" not in line


@pytest.mark.parametrize(
    "metric, value, text",
    [
        ("accuracy", 0.79123, "79.12 %"),
        ("macro_f1", 1.0, "100.00 %"),
        ("loss", 0.43125, "0.4313"),
        ("loss", 0.0, "0.0000"),
        ("loss", 1.5e-7, "1.500e-07"),
        ("loss", float("nan"), "nan"),
        ("loss", None, "–"),
    ],
)
def test_scores_are_formatted_by_their_kind(metric: str, value: float | None, text: str) -> None:
    assert formats.score(metric_of(metric, {"kind": "toy_texts"}), value) == text


@pytest.mark.parametrize("damage", ["cpus_per_task: [", "- 1\n", "cpus_per_task: many\n"])
def test_unreadable_resources_do_not_hide_the_results(finished_run: RunDir, damage: str) -> None:
    finished_run.job.write_text(damage)
    summary = summarize(finished_run)
    assert summary.scores["test"]["accuracy"] == 0.7912
    # As many as a rank on a GPU gets by default.
    assert [attempt.cpus for attempt in summary.attempt_usage] == [16, 8]


def test_amounts_are_formatted_with_significant_digits() -> None:
    shown = [formats.hours(hours) for hours in (0, 0.0123, 0.5, 12.34, 123456.7)]
    assert shown == ["0.00", "0.012", "0.50", "12.3", "123,457"]
    assert [formats.clock(seconds) for seconds in (9.2, 61, 90061)] == ["9.2 s", "0:01:01", "25:01:01"]


@pytest.mark.parametrize(
    "evaluation, task, metric, goal",
    [
        ({"metric": "mned:max"}, {}, "mned", "max"),  # as recorded
        ({"metric": "odd:min"}, {}, "odd", "min"),
        ({"metric": "odd:min"}, {"kind": "toy_points"}, "distance", "min"),  # as declared
        ({}, {"kind": "toy_texts"}, "accuracy/of_a_slice", "max"),
        ({}, {"kind": "one that is gone"}, "loss", "min"),
        ({}, {"kind": "one that is gone"}, "macro_recall", None),
        ({"metric": "odd"}, {}, "odd", None),
        ({}, {"kind": "toy_texts"}, "distance", None),
    ],
)
def test_the_goal_is_the_recorded_one_or_else_the_declared_one(
    evaluation: dict[str, str], task: dict[str, str], metric: str, goal: str | None
) -> None:
    assert goal_of({"evaluation": evaluation, "task": task}, metric) == goal


def test_a_run_with_an_undeclared_metric_has_no_best(new_run: RunDir) -> None:
    write_config(new_run, metric="odd")
    append_json_line(new_run.metrics, {"step": 1, "split": "validation", "odd": 0.5})
    summary = summarize(new_run)
    assert summary.best is None
    assert (main_metric(summary), summary.scores["validation"]["odd"]) == ("odd", 0.5)


@pytest.mark.parametrize(
    "kind, metric, title, shown",
    [
        ("toy_texts", "macro_f1", "macro F1", "50.00 %"),
        ("toy_texts", "accuracy/of_a_slice", "accuracy, of_a_slice", "50.00 %"),
        ("toy_points", "distance", "Mean distance", "0.5000"),
        ("toy_texts", "no_such_rate", "no such rate", "0.5000"),
    ],
)
def test_titles_and_units_are_as_declared(kind: str, metric: str, title: str, shown: str) -> None:
    known = metric_of(metric, {"kind": kind})
    assert (formats.metric_title(metric, known), formats.score(known, 0.5)) == (title, shown)


def test_training_scores_are_means_of_the_last_whole_epoch_not_of_the_result(new_run: RunDir) -> None:
    for step, epoch, loss, count in ((3, 0.75, 1.0, 96), (4, 1.0, 0.5, 4), (7, 1.75, 9.0, 96)):
        line = {"step": step, "epoch": epoch, "split": "train", "loss": loss, "count": count}
        append_json_line(new_run.metrics, line)
    result = {"state": "finished", "step": 7, "epoch": 1.75, "metrics": {"train": {"loss": 9.0}}}
    summary = summarize(new_run, result)
    assert summary.scores["train"] == {"loss": pytest.approx(0.98)}
    assert scores_table(summary).head == ("metric", "train, mean over epoch 1")


def test_the_first_epoch_is_shown_before_it_is_complete(new_run: RunDir) -> None:
    append_json_line(new_run.metrics, {"step": 1, "epoch": 0.25, "split": "train", "loss": 2.0})
    assert summarize(new_run).scores["train"] == {"loss": 2.0}
    assert "so far" in scores_table(summarize(new_run)).head[1]


def test_the_final_report_states_how_the_last_attempt_ended(new_run: RunDir) -> None:
    for number in (0, 1):
        start = {"attempt": number, "time_start": START_S + 1000 * number, "first_step": 30 * number}
        append_json_line(new_run.attempts, start)
    append_json_line(
        new_run.attempts, {"attempt": 0, "time_end": START_S + 60, "last_step": 30, "why": "preempted"}
    )
    final = summarize(new_run, {"state": "finished", "step": 69})
    first, last = final.attempts
    assert (first.last_step, first.why) == (30, "preempted")
    assert (last.first_step, last.last_step, last.why) == (30, 69, "finished")
    assert last.time_end is not None
    # Its time, and with it the goodput, is counted up to the same end.
    assert final.attempt_usage[-1].time.end == pytest.approx(last.time_end, abs=60)
    # Read later, attempts.jsonl alone tells: this one was killed.
    assert summarize(new_run).attempts[-1].why is None


def test_a_text_in_place_of_a_number_of_an_attempt_counts_as_missing(finished_run: RunDir) -> None:
    append_json_line(finished_run.attempts, {"attempt": 1, "exact_share": "much"})
    first, *_ = summarize(finished_run).attempts
    assert first.exact_share is None


def test_the_headline_says_that_the_best_checkpoint_was_lost(finished_run: RunDir) -> None:
    assert "lost" not in dict(headline(summarize(finished_run)))["best"]
    append_json_line(finished_run.events, {"event": "best_lost", "step": 200})
    assert "lost" in dict(headline(summarize(finished_run)))["best"]


@pytest.mark.parametrize("epochs, is_early", [(3, False), (40, True)])
def test_the_headline_of_an_early_stopped_run_says_so(
    finished_run: RunDir, epochs: int, is_early: bool
) -> None:
    summary = summarize(finished_run)
    summary = replace(summary, epochs=epochs, config={**summary.config, "evaluation": {"patience": 2}})
    assert ("stopped early (evaluation.patience: 2)" in dict(headline(summary))["steps"]) is is_early
