"""Amounts in resources: what Slurm takes is accepted, the rest is refused with a suggestion."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm.config.amount_rules import amounts
from slurm.config.resources import Resources
from slurm.submission.batch.job_options import components


@pytest.mark.parametrize(
    "time", ["60", "1:30", "1:00:00", "2-0", "2-12:30", "2-12:30:15", 90, "0", "UNLIMITED", "infinite"]
)
def test_a_time_limit_has_one_of_slurms_forms(good, time):
    assert good(resources={"time": time}).resources.time == str(time)


@pytest.mark.parametrize(
    "time, hint",
    [
        ("", ""), ("1:2:3:4", ""), ("2-", ""), ("1:", ""), ("٣", ""), ("1:00:00\n", ""),
        ("1h", "01:00:00"), ("90m", "90 minutes"), ("1.5h", "01:30:00"), ("2 days", "2-00:00:00"),
        ("30 s", "00:01:00"), ("1.5", "1:30 for 1.5 minutes"), (1.5, "01:30:00 for 1.5 hours"),
        (90.0, "90:00"), ("0.001", "0:01"), ("9" * 400 + "h", ""),
        (0.0, ""), ("0h", ""), ("0.0 m", ""),
    ],
)  # fmt: skip
def test_invalid_time_limit_is_refused_with_a_suggestion(broken, time, hint):
    told = [fault.hint for fault in broken(resources={"time": time}) if fault.key == "resources.time"]
    assert any(hint in each and bool(hint) == bool(each) for each in told)


@pytest.mark.parametrize("name", ["mem", "mem_per_cpu", "mem_per_gpu"])
@pytest.mark.parametrize(
    "text, hint",
    [
        ("2.5G", "2560M"),
        ("16GiB", "16G"),
        ("-1", "0 for all"),
        ("lots", ""),
        ("1.5 t", "1536G"),
        ("1.5", "1536M"),
        (1.5, "1536M for 1.5G, 2M for 1.5M"),
        (4e3, "4000G for 4000.0G, 4000M for 4000.0M"),
        (0.0, "0 for all memory of a host"),
        ("0.0G", "0 for all"),
        ("9" * 400 + ".5G", ""),
    ],
)
def test_invalid_memory_is_refused_with_a_suggestion(broken, name, text, hint):
    (fault,) = broken(resources={name: text})
    assert fault.key == f"resources.{name}"
    assert hint in fault.hint


def test_only_one_memory_key_may_be_set(good, broken):
    assert good(resources={"mem_per_cpu": "4G"})
    (fault,) = broken(resources={"mem": "16G", "mem_per_gpu": "4G"})
    assert fault.key == "resources.mem_per_gpu"
    assert "resources.mem is '16G'" in fault.problem


@pytest.mark.parametrize(
    "gres, hint",
    [("2", "gpu:2"), ("gres/gpu:2", "gpu:2"), ("gpu:0", "leave it out"), ("a:1,gres:b:2", "b:2")],
)
def test_invalid_gres_is_refused_with_a_suggestion(broken, gres, hint):
    (fault,) = broken(resources={"gres": gres})
    assert (fault.key, fault.hint) == ("resources.gres", hint)


@pytest.mark.parametrize(
    "gres", ["gpu", "gpu:2", "gpu:a100:4,tmpdisk:10", "shard:1K", "fancy:thing:of:later"]
)
def test_other_gres_notations_are_left_to_slurm(good, gres):
    assert good(resources={"gres": gres})


def test_amounts_are_explained() -> None:
    found = list(amounts(Resources(time="24:00", mem="512")))
    assert found == ["time 24:00: 24 minutes", "mem 512: 512M of each host"]
    found = list(amounts(Resources(time="1-06:30", mem_per_gpu="0")))
    assert found == ["time 1-06:30: 1 day 6 hours 30 minutes", "mem_per_gpu 0: all memory of each GPU"]
    assert list(amounts(Resources(time="0"))) == ["time 0: no limit"]
    assert list(amounts(Resources())) == []


@given(st.integers(1, 10**6))
def test_memory_without_a_unit_reaches_slurm_in_megabytes(megabytes: int) -> None:
    (part,) = components(Resources(mem=str(megabytes)))
    assert part.options["mem"] == f"{megabytes}M"
