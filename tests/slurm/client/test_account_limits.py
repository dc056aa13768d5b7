"""QOS and associations, recorded from a real cluster (22.05)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from slurm.client.account_limits import parse_associations, parse_qos
from slurm.client.parse import parse_seconds
from tests.slurm.doctor.clusters import recorded


def test_qos_is_read_with_its_grace_preempted_qos_and_limits() -> None:
    normal, preemptor, spare = parse_qos(recorded("qos.txt"))
    assert (normal.grace_s, normal.limits, normal.preempts) == (0, {}, frozenset())
    assert preemptor.preempts == {"normal", "spare"}
    assert (spare.grace_s, spare.preempt_mode, spare.flags) == (60, "requeue", {"DenyOnLimit"})
    assert spare.limits == {
        "MaxWall": "04:00:00",
        "MaxTRESPU": "gres/gpu=2",
        "MaxSubmitPU": "20",
        "GrpTRES": "gres/gpu=8",
    }


def test_associations_are_read_with_their_limits() -> None:
    research, root = parse_associations(recorded("associations.txt"))
    assert (research.account, root.account, research.partition) == ("research", "root", "")
    assert research.qos == {"normal", "spare"}
    limits = {"MaxWall": "1-00:00:00", "MaxJobs": "8", "MaxSubmit": "50", "GrpTRES": "gres/gpu=6"}
    assert research.limits == limits


def test_lines_of_another_form_are_passed_over() -> None:
    assert parse_qos("sacctmgr: a banner\n\nnormal|00:00:00\n") == []
    assert parse_qos(recorded("no_accounting.txt")) == []


@given(st.text(max_size=300))
def test_any_text_is_parsed_without_an_error(text: str) -> None:
    parse_qos(text)
    parse_associations(text)


@given(st.integers(0, 99), st.integers(0, 23), st.integers(0, 59), st.integers(0, 59))
def test_spans_of_time_are_counted_in_seconds(days: int, hours: int, minutes: int, seconds: int) -> None:
    total = ((days * 24 + hours) * 60 + minutes) * 60 + seconds
    assert parse_seconds(f"{days}-{hours:02}:{minutes:02}:{seconds:02}") == total
    assert parse_seconds(f"{total} sec") == parse_seconds(str(total)) == total


@given(st.text(max_size=20))
def test_any_text_is_read_as_a_non_negative_number_of_seconds(text: str) -> None:
    assert parse_seconds(text) >= 0
