"""Comparison of two runs: the first step that differs, and possible causes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolkit.analysis.diff import Difference, FirstStep, compare, trained_on
from toolkit.errors import UserError
from toolkit.files import append_json_line, write_json
from toolkit.run.run_dir import RunDir

CONFIG = """\
name: {name}
seed: {seed}
train: {{epochs: 2, batch_size: 8}}
model: {{kind: convolutions, kernels: [2, 3]}}
"""

Make = Callable[..., RunDir]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Makes a run's folder: its steps as (samples, loss), the weights of its saves by step."""

    def make(
        name: str,
        steps: dict[int, tuple[str, float]],
        saves: dict[int, str] | None = None,
        *,
        seed: int = 0,
        code: dict[str, str] | None = None,
    ) -> RunDir:
        run = RunDir(tmp_path / name)
        run.path.mkdir()
        run.config.write_text(CONFIG.format(name=name, seed=seed))
        for file, text in (code or {"toolkit/training/loop.py": "pass\n"}).items():
            (run.code / file).parent.mkdir(parents=True, exist_ok=True)
            (run.code / file).write_text(text)
        for step, (samples, loss) in steps.items():
            append_json_line(run.step_records, {"step": step, "samples": samples, "loss": loss})
        for step, weights in (saves or {}).items():
            append_json_line(run.step_records, {"step": step, "chain": "", "weights": weights})
        return run

    return make


THREE = {1: ("aa", 1.0), 2: ("bb", 0.5), 3: ("cc", 0.25)}


def test_equal_runs_are_equal_and_their_common_steps_and_saves_are_counted(make: Make) -> None:
    found = compare(make("a", THREE, {2: "11", 3: "22"}), make("b", THREE, {3: "22"}))
    assert found.is_equal
    assert (found.steps, found.compared, found.saves) == ((3, 3), 3, 1)
    assert found.config == {"name": ("a", "b")}
    assert found.code == {"changed": [], "only_first": [], "only_second": []}


def test_the_first_difference_is_reported_with_its_step_and_kind(make: Make) -> None:
    smallest = 0.5 + 2**-53
    losses = compare(make("a", THREE), make("b", {**THREE, 2: ("bb", smallest), 3: ("xx", 9.0)}))
    assert losses.first == FirstStep(step=2, what="loss", samples=("bb", "bb"), loss=(0.5, smallest))
    assert not losses.is_equal
    samples = compare(make("c", THREE), make("d", {**THREE, 3: ("xx", 9.0)}))
    assert samples.first == FirstStep(step=3, what="samples", samples=("cc", "xx"), loss=(0.25, 9.0))


def test_runs_with_equal_losses_and_different_weights_differ(make: Make) -> None:
    found = compare(
        make("a", THREE, {1: "11", 2: "22", 3: "33"}), make("b", THREE, {1: "11", 2: "xx", 3: "yy"})
    )
    assert (found.first, found.weights, found.saves, found.is_equal) == (None, 2, 3, False)


def test_possible_causes_are_listed_by_key_file_and_version(make: Make) -> None:
    one = make("a", THREE, code={"toolkit/training/loop.py": "1", "toolkit/old.py": "", "slurm/cli.py": ""})
    other = make(
        "b", THREE, seed=7, code={"toolkit/training/loop.py": "2", "slurm/cli.py": "", "slurm/new.py": ""}
    )
    # Equal length and time would deceive a comparison that does not read.
    for run, data, torch in ((one, "f1", "2.6"), (other, "f2", "2.13")):
        run.checkpoint(4).mkdir(parents=True)
        manifest = {"data": data, "torch": torch, "files": {"model.safetensors": {"crc32": 1}}}
        write_json(run.checkpoint(4) / "MANIFEST.json", manifest)
    write_json(other.quarantine, {"samples": [{"id": 5, "step": 1, "reason": ""}]})
    found = compare(one, other)
    assert found.config == {"name": ("a", "b"), "seed": (0, 7)}
    assert found.code == {
        "changed": ["toolkit/training/loop.py"],
        "only_first": ["toolkit/old.py"],
        "only_second": ["slurm/new.py"],
    }
    assert (found.data, found.torch) == (("f1", "f2"), ("2.6", "2.13"))
    assert found.quarantine == ([], [5])
    assert found.saves == 1


def test_a_list_is_one_value_of_its_key_and_a_missing_key_is_none(make: Make) -> None:
    one, other = make("a", THREE), make("b", THREE)
    other.config.write_text(CONFIG.format(name="a", seed=0).replace("[2, 3]", "[2]").replace("seed: 0\n", ""))
    assert compare(one, other).config == {"seed": (0, None), "model.kernels": ([2, 3], [2])}


def test_a_key_that_earlier_versions_lack_is_no_cause_at_its_default(make: Make) -> None:
    one, other = make("a", THREE), make("b", THREE)
    for value, config in (("auto", {}), ("'on'", {"train.compile": ("auto", "on")})):
        other.config.write_text(
            CONFIG.format(name="a", seed=0).replace("batch_size: 8", f"batch_size: 8, compile: {value}")
        )
        assert compare(one, other).config == config


def test_devices_of_equal_attempts_are_listed_once(run: RunDir) -> None:
    for number, (size, device) in enumerate([(1, "cpu"), (4, "cuda"), (1, "cpu")], start=1):
        append_json_line(run.attempts, {"attempt": number, "world_size": size, "device": device})
    assert trained_on(run) == ["1 process on cpu", "4 processes on cuda"]


def test_runs_that_cannot_be_compared_say_why(make: Make) -> None:
    with pytest.raises(UserError, match=r"b has no step records \(.*receipts.jsonl\)"):
        compare(make("a", THREE), make("b", {}))
    with pytest.raises(UserError, match="c and d have no step in common"):
        compare(make("c", {1: THREE[1]}), make("d", {2: THREE[2]}))


@pytest.mark.parametrize("text", ["a: [1", "- 1\n", ""])
def test_a_damaged_config_is_named(make: Make, text: str) -> None:
    other = make("b", THREE)
    other.config.write_text(text)
    with pytest.raises(UserError, match=r"b/config\.yaml"):
        compare(make("a", THREE), other)


def test_damaged_lines_are_skipped(make: Make) -> None:
    one, other = make("a", THREE), make("b", {1: THREE[1]})
    with open(other.step_records, "a") as stream:
        stream.write('{"step": 2, "samples": "b\n{"samples": 1}\n[]\n')
    append_json_line(other.step_records, {"step": 3, "samples": "cc", "loss": 0.25})
    found = compare(one, other)
    assert (found.compared, found.is_equal) == (2, True)


run_steps = st.dictionaries(
    st.integers(1, 15), st.tuples(st.sampled_from("ab"), st.sampled_from([0.5, 0.25])), min_size=1
)


@given(run_steps, run_steps)
@settings(max_examples=40, deadline=None)
def test_comparison_finds_the_first_different_common_step(
    tmp_path_factory: pytest.TempPathFactory, a: dict[int, tuple[str, float]], b: dict[int, tuple[str, float]]
) -> None:
    """The step records may have gaps, and one run may be longer than the other."""
    runs = []
    for steps in (a, b):
        run = RunDir(tmp_path_factory.mktemp("run"))
        run.config.write_text("name: x\n")
        run.step_records.write_text(
            "".join(
                f'{{"step": {step}, "samples": "{steps[step][0]}", "loss": {steps[step][1]}}}\n'
                for step in sorted(steps)
            )
        )
        runs.append(run)
    common = sorted(a.keys() & b.keys())
    if not common:
        with pytest.raises(UserError):
            compare(*runs)
        return
    found: Difference = compare(*runs)
    expected = next((step for step in common if a[step] != b[step]), None)
    assert (found.first.step if found.first else None) == expected
    assert found.compared == len(common)
    assert found.steps == (max(a), max(b))
