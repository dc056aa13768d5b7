"""Jobs that wait for a run go with it when it goes on in a new job."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm.client import programs
from slurm.client.parse import parse_dependencies
from slurm.submission.submit_job import chain, move_dependants, renamed
from tests.slurm.support.fake_slurm import FakeSlurm
from tests.slurm.support.pretend_job import PretendJob
from toolkit.errors import SlurmRefused


@pytest.mark.parametrize(
    "words, expected",
    [
        ("afterok:12", "afterok:99"),
        ("afterok:12:13", "afterok:99:13"),
        ("afterany:7,afterok:12", "afterany:7,afterok:99"),
        ("afterok:7?after:12+5", "afterok:7?after:99+5"),
        ("afterok:123,afterok:512", "afterok:123,afterok:512"),
        ("afterok:12_3", "afterok:12_3"),
        ("singleton", "singleton"),
    ],
)
def test_job_id_in_a_dependency_is_replaced(words: str, expected: str) -> None:
    assert renamed(words, "12", "99") == expected


_IDS = st.integers(1, 10**6).map(str)


@given(st.lists(st.tuples(st.sampled_from(["after", "afterok", "afterany"]), _IDS), min_size=1), _IDS, _IDS)
def test_other_job_ids_of_a_dependency_are_kept(parts: list[tuple[str, str]], old: str, new: str) -> None:
    words = ",".join(f"{kind}:{job_id}" for kind, job_id in parts)
    expected = ",".join(f"{kind}:{new if job_id == old else job_id}" for kind, job_id in parts)
    assert renamed(words, old, new) == expected


def test_words_added_by_squeue_are_left_out_of_dependencies() -> None:
    text = "12|afterok:7(unfulfilled),afterany:8(failed)\n13|(null)\n14|NULL\n15|\n nonsense\n"
    assert parse_dependencies(text) == {"12": "afterok:7,afterany:8"}


def test_pending_tasks_are_listed_as_their_array_and_uneven_components_one_by_one() -> None:
    text = "".join(f"{job_id}|afterok:7(unfulfilled)\n" for job_id in ("4_[0-3%2]", "5_2", "6+0", "6+1"))
    assert list(parse_dependencies(text)) == ["4", "5_2", "6+0", "6+1"]


def test_only_jobs_that_wait_for_the_old_job_are_moved(fake: FakeSlurm) -> None:
    fake.add("1", dependency="afterok:101")
    fake.add("2", dependency="afterok:1010")
    fake.add("3", dependency="afterany:101,afterok:5")
    fake.add("4", dependency="afterok:101", state="RUNNING")
    assert move_dependants("101", "200") == ["1", "3"]
    assert [job["dependency"] for job in fake.jobs] == [
        "afterok:200", "afterok:1010", "afterany:200,afterok:5", "afterok:101",
    ]  # fmt: skip
    assert move_dependants("101", "200") == []


def test_new_uneven_job_itself_keeps_waiting_for_the_old_job(fake: FakeSlurm) -> None:
    """Told to wait for each other they would never start, and keep hosts from everybody else."""
    for job_id in ("200+0", "200+1", "300+0", "300+1"):
        fake.add(job_id, dependency="afterany:101")
    assert move_dependants("101", "200") == ["300+0", "300+1"]
    assert [job["dependency"] for job in fake.jobs] == ["afterany:101"] * 2 + ["afterany:200"] * 2


def test_run_that_continues_in_a_new_job_moves_its_dependants_there(job: PretendJob, fake: FakeSlurm) -> None:
    fake.add("900", dependency="afterok:101")
    following = chain(job.run, "101", job.environ)
    jobs = {job["job_id"]: job["dependency"] for job in fake.jobs if "dependency" in job}
    assert jobs["900"] == f"afterok:{following.job_id}"
    assert jobs[following.job_id] == "afterany:101"
    (event,) = job.events("dependants")
    assert (event["jobs"], event["next_job_id"]) == (["900"], following.job_id)


def test_run_continues_if_its_dependants_cannot_be_moved(job: PretendJob, fake: FakeSlurm) -> None:
    fake.add("900", dependency="afterok:101")
    fake.refuses_to("update jobid=900 dependency=afterok:103", "slurm_update error: Access denied")
    following = chain(job.run, "101", job.environ)
    assert following.job_id == "103"
    (event,) = job.events("dependants_lost")
    assert "Access denied" in event["reason"]


def test_job_that_cannot_be_moved_does_not_stop_the_others(fake: FakeSlurm) -> None:
    for job_id in ("1", "2"):
        fake.add(job_id, dependency="afterok:101")
    fake.refuses_to("update jobid=1 dependency=afterok:200", "slurm_update error: Access denied")
    with pytest.raises(SlurmRefused, match="Access denied"):
        move_dependants("101", "200")
    assert fake.jobs[1]["dependency"] == "afterok:200"


def test_only_pending_jobs_of_the_user_are_queried(fake: FakeSlurm) -> None:
    assert programs.dependencies("ada") == {}
    (call,) = fake.calls("squeue")
    assert "--states=PENDING" in call
    assert "--user=ada" in call
