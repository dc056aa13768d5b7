"""An experiment survives being written; its identity is what changes the result, and nothing else."""

from __future__ import annotations

import dataclasses
import re
import typing
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.toolkit.config.trees import GOOD
from toolkit.config import check, load, load_resolved, run_id, to_plain, to_yaml
from toolkit.config.checking.descriptions import without_none
from toolkit.config.fields import limits, option
from toolkit.config.identity import identity

SAMPLE = check(GOOD)

HOSTILE = [
    "${oc.env:HOME}", "\\${a}", "${from_file:x.yaml}", "???", "no", "1:00:00", "1e3", "null", "~", "", " ",
    "true", "2024-01-01", "007", "a: b", "- a", "#", "'", '"', "\\", "%", "@", "`", "|", ">", "&a", "*a",
    "!!int 1", "<<", "a\nb\n\n c", "\n", "\t", "\r\n", "\x07", "\x1b[0m", "\x7f", "\x85", "\u2028", "\ufeff",
    "é", "日本", "🙂", "\ufffe",
]  # fmt: skip
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
TEXT |= st.sampled_from(HOSTILE) | st.tuples(TEXT, st.sampled_from(HOSTILE)).map("".join)
LINE = TEXT.map(lambda text: text.replace("\n", " ").replace("\r", " "))

#: Where rules over several keys, or forms, leave less freedom than the type does.
SPECIAL = {
    "name": st.from_regex(limits(type(SAMPLE).__dataclass_fields__["name"]).pattern or "", fullmatch=True),
    "task.kind": st.just("toy_texts"),
    "model.kind": st.just("convolutions"),
    "data.path": TEXT.filter(bool),
    "data.train": st.none(),
    "data.validation": st.none(),
    "data.test": st.none(),
    "data.columns": st.none() | st.just(["text", "label"]),
    "data.text_column": st.just("text"),
    "data.label_column": st.just("label"),
    "data.tokenizer": st.sampled_from(["words", "letters"]),
    "data.delimiter": st.none() | st.sampled_from(",\t|→"),
    "data.splits": st.fixed_dictionaries(
        {"train": st.floats(0.1, 9), "validation": st.floats(0.1, 9)}, optional={"test": st.floats(0, 9)}
    ),
    "train.logical_ranks": st.sampled_from([64, 128]),
    "train.workers": st.just(0),
    # A sample or more for each process.
    "train.batch_size": st.integers(64, 2**31 - 1),
    "train.accumulation": st.sampled_from([1, 2, 4]),
    "train.parallel": st.sampled_from(["auto", "ddp"]),
    "train.device": st.sampled_from(["auto", "cuda"]),
    "train.start_from_checkpoint": st.sampled_from([None, "/runs/one", "runs/größe/checkpoints/best"]),
    # The other way to say how large a step is has a test of its own.
    "train.batch_max_length": st.none(),
    "train.bucket_span": st.none(),
    "evaluation.batch_max_length": st.none(),
    # Only some kinds have these.
    "train.compile": st.sampled_from(["auto", "off"]),
    "optimizer.kind": st.sampled_from(["adam", "adamw"]),
    "optimizer.betas": st.tuples(st.floats(0, 0.99), st.floats(0, 0.99)),
    "optimizer.momentum": st.just(0.0),
    "optimizer.arguments": st.sampled_from([{}, {"amsgrad": True}]),
    "lr_scheduler.kind": st.sampled_from(["constant", "cosine", "step"]),
    "lr_scheduler.step_epochs": st.just(1.0),
    "lr_scheduler.gamma": st.just(0.5),
    "lr_scheduler.step_at": st.none(),
    "lr_scheduler.arguments": st.just({}),
    # Each of these stands instead of another key.
    "train.steps": st.none(),
    "train.eval_epochs": st.none(),
    "evaluation.metric": st.sampled_from(["loss:min", "macro_f1:max"]),
    "resources.nodes": st.integers(1, 8),
    "resources.tasks_per_node": st.integers(1, 8),
    "resources.world_size": st.none(),
    "resources.groups": st.just(()),
    "resources.hosts": st.just({}),
    "resources.time": st.sampled_from([None, "1:00:00", "60", "2-12", "UNLIMITED"]),
    "resources.gres": st.sampled_from([None, "gpu:2", "gpu:a100:1,tmpdisk:10"]),
    "resources.mem": st.sampled_from([None, "16G", "512", "0"]),
    "resources.mem_per_cpu": st.none(),
    "resources.mem_per_gpu": st.none(),
    "resources.setup": st.lists(TEXT, max_size=3),
    "resources.environment": st.dictionaries(st.text("aA_", min_size=1, max_size=3), TEXT),
    "resources.sbatch": st.dictionaries(st.sampled_from(["wckey", "nice"]), LINE | st.booleans()),
}  # fmt: skip


def values(hint: typing.Any, allowed: typing.Any) -> st.SearchStrategy[typing.Any]:
    """Values that a field may have by its type and limits."""
    hint, optional = without_none(hint)
    if optional:
        return st.none() | values(hint, allowed)
    if allowed.choices:
        one = st.sampled_from(allowed.choices)
        return st.lists(one, max_size=3) if typing.get_origin(hint) is tuple else one
    if hint is str and allowed.path:
        return TEXT.filter(bool)
    if allowed.pattern:
        return st.from_regex(allowed.pattern, fullmatch=True)
    low, above, high = allowed.minimum, allowed.above, allowed.maximum
    if hint is float:
        low = above if above is not None else low
        return st.floats(low, high, exclude_min=above is not None, allow_nan=False, allow_infinity=False)
    if typing.get_origin(hint) is tuple:
        inner, *more = typing.get_args(hint)
        each = values(inner, allowed)
        return st.lists(each, max_size=3) if more == [...] else st.tuples(each, each)
    return {int: st.integers(low, 2**31 - 1 if high is None else high), bool: st.booleans(), str: LINE}[hint]


def section(example: typing.Any, prefix: str = "") -> st.SearchStrategy[dict[str, typing.Any]]:
    """Plain trees of the sections that an example has, each key there or not."""
    hints = typing.get_type_hints(type(example))
    mandatory: dict[str, typing.Any] = {}
    optional: dict[str, typing.Any] = {}
    for field in dataclasses.fields(example):
        key, value = prefix + field.name, getattr(example, field.name)
        if dataclasses.is_dataclass(value):
            mandatory[field.name] = section(value, f"{key}.")
        elif key in ("name", "task.kind", "model.kind", "data.path", "train.logical_ranks"):
            mandatory[field.name] = SPECIAL[key]
        else:
            optional[field.name] = (
                SPECIAL[key] if key in SPECIAL else values(hints[field.name], limits(field))
            )
    return st.fixed_dictionaries(mandatory, optional=optional)


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(section(SAMPLE))
def test_a_stored_experiment_comes_back_equal_and_with_the_same_identity(tmp_path_factory, tree):
    experiment = check(tree)
    path = tmp_path_factory.mktemp("run") / "config.yaml"
    path.write_text(to_yaml(experiment), encoding="utf-8")
    again = load_resolved(path)
    assert again == experiment
    assert repr(again) == repr(experiment)
    assert run_id(again) == run_id(experiment)
    assert to_yaml(again) == to_yaml(experiment)


def test_a_stored_experiment_with_steps_of_tokens_comes_back_equal():
    sections = {
        "train": {"batch_max_length": 4096, "bucket_span": 4},
        "evaluation": {"batch_max_length": 4096},
    }
    experiment = check({**GOOD, **sections})
    Path("config.yaml").write_text(to_yaml(experiment), encoding="utf-8")
    assert load_resolved(Path("config.yaml")) == experiment


@pytest.mark.parametrize("text", HOSTILE)
def test_text_with_yaml_syntax_and_control_characters_is_restored(text):
    tree = {**GOOD, "resources": {"environment": {"A": text}, "setup": [text]}}
    tree["data"] = {"path": "/x", "text_column": text, "labels": [text, "x"]}
    Path("config.yaml").write_text(to_yaml(check(tree)), encoding="utf-8", newline="")
    experiment = load_resolved(Path("config.yaml"))
    assert experiment.resources.environment == {"A": text}
    assert experiment.resources.setup == (text,)
    assert experiment.data.text_column == text
    assert experiment.data.labels == (text, "x")


def test_loading_a_stored_experiment_ignores_environment_and_working_folder(movies, monkeypatch):
    experiment = load(movies, [r"resources.setup=['cd \${oc.env:UNSET}']"])
    Path("config.yaml").write_text(to_yaml(experiment), encoding="utf-8")
    movies.unlink()
    monkeypatch.setenv("STK_DATA_DIR", "/elsewhere")
    monkeypatch.chdir("configs")
    again = load_resolved(Path("../config.yaml"))
    assert again == experiment
    assert again.resources.setup == ("cd ${oc.env:UNSET}",)


def test_a_damaged_stored_experiment_is_a_config_error(faults):
    Path("config.yaml").write_text(to_yaml(SAMPLE).replace("epochs: 10", "epochs: x"), encoding="utf-8")
    (fault,) = faults(load_resolved, Path("config.yaml"))
    assert fault.key == "train.epochs"
    assert re.fullmatch(r"config\.yaml:\d+", fault.origin)


def test_the_run_id_is_the_name_and_eight_hex_digits():
    assert re.fullmatch(r"movies-[0-9a-f]{8}", run_id(SAMPLE))


def test_the_identity_of_an_experiment_is_the_same_on_every_machine():
    """Another value would orphan every existing run folder; change it only with the schema."""
    small = dataclasses.replace(SAMPLE, train=None, optimizer=None, lr_scheduler=None, checkpoint=None)
    small = dataclasses.replace(small, evaluation=None, model=None, data=None)
    assert identity(small) == "8e76b179"


def test_equal_numbers_and_the_order_of_keys_do_not_change_the_identity():
    whole = {"data": {"path": "/x", "splits": {"train": 1, "validation": 2.0}}, "train": {"clip_norm": 1}}
    other = {"data": {"splits": {"validation": 2, "train": 1.0}, "path": "/x"}, "train": {"clip_norm": 1.0}}
    one = check(GOOD | whole)
    assert identity(one) == identity(check(GOOD | other))
    as_int = dataclasses.replace(one, train=dataclasses.replace(one.train, clip_norm=1))
    assert as_int == one
    assert identity(as_int) == identity(one)


def leaves(value: typing.Any, path: tuple[str, ...] = (), kept: bool = True) -> typing.Iterator[typing.Any]:
    """Path, and whether it belongs to the identity, of every field that is no section."""
    for field in dataclasses.fields(value):
        inner, inner_path = getattr(value, field.name), (*path, field.name)
        inner_kept = kept and limits(field).identity
        if dataclasses.is_dataclass(inner):
            yield from leaves(inner, inner_path, inner_kept)
        else:
            yield pytest.param(inner_path, inner_kept, id=".".join(inner_path))


def changed(value: typing.Any, path: tuple[str, ...]) -> typing.Any:
    """The experiment with another value in one field."""
    name, *rest = path
    old = getattr(value, name)
    new = changed(old, tuple(rest)) if rest else another(old)
    return dataclasses.replace(value, **{name: new})


def another(value: typing.Any) -> typing.Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    if isinstance(value, dict):
        return {**value, "another": 1}
    return {str: "another", tuple: (1, 2, 3, 4), type(None): "another"}[type(value)]


@pytest.mark.parametrize("path, kept", list(leaves(SAMPLE)))
def test_the_identity_changes_with_every_field_that_changes_the_result_and_no_other(path, kept):
    assert (identity(changed(SAMPLE, path)) != identity(SAMPLE)) is kept


def test_resources_and_timeouts_are_not_part_of_the_identity():
    outside = {".".join(each.values[0]) for each in leaves(SAMPLE) if not each.values[1]}
    assert {"resources.nodes", "resources.environment", "data.prepared_dir"} <= outside
    assert {"checkpoint.keep", "checkpoint.every_steps"} <= outside
    assert {"train.rendezvous_timeout_s", "train.collective_timeout_s"} <= outside
    assert not outside & {"seed", "train.batch_size", "train.logical_ranks", "model.filters", "data.path"}


def test_the_default_of_an_added_key_keeps_the_identity_of_old_runs():
    @dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
    class Later(type(SAMPLE.data)):  # type: ignore[misc]
        rounds: int = option(1, minimum=1, added=True)

    def later(rounds):
        row = {each.name: getattr(SAMPLE.data, each.name) for each in dataclasses.fields(SAMPLE.data)}
        return dataclasses.replace(SAMPLE, data=Later(**row, rounds=rounds))

    assert identity(later(1)) == identity(SAMPLE) != identity(later(2))
    assert to_plain(later(1))["data"]["rounds"] == 1


def test_a_changed_default_keeps_the_identity_of_the_earlier_default():
    """The experiment file of an earlier version still finds its run."""

    def of(precision):
        return dataclasses.replace(SAMPLE, train=dataclasses.replace(SAMPLE.train, precision=precision))

    assert identity(of("auto")) == identity(of("fp32")) != identity(of("bf16"))
    assert to_plain(of("auto"))["train"]["precision"] == "auto"
