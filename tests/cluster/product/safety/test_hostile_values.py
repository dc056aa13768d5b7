"""Names and values that shells, sbatch and YAML would take for something else."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path

import pytest

from tests.cluster.cluster import Cluster
from tests.cluster.product.stopping.requeue_cases import Case
from tests.cluster.product.user import User, weights
from toolkit.run.run_dir import RunDir

#: What a folder's name may hold; only slash, NUL and what a batch script refuses are missing.
FOLDER = """it's "my" $HOME `id` #1; ä 漢字 * ? [a] {b} & | < > ~ ! = , (x) @ ^"""
COMMENT = """she said "don't $(touch /tmp/never)", #1, 100% \\n"""

#: What a value is drawn from: all that a shell, sbatch, YAML or a terminal may take for something else.
_LETTERS = [
    *map(chr, range(1, 0x7F)),
    *"\x85\xa0äß漢🙂\u2028\ufeff",
    "$(id)",
    "${PATH}",
    "%j",
    "\r\n",
    "--",
    "~",
]


def _random_values(count: int) -> dict[str, str]:
    choice = random.Random(28)
    return {
        f"RANDOM_{number}": "".join(choice.choices(_LETTERS, k=choice.randrange(1, 40)))
        for number in range(count)
    }


ENVIRONMENT = {
    "PLAIN": "value",
    "WITH_COMMAS": "a,b,,c",
    "WITH_NEWLINES": "one\ntwo\n\nthree\n",
    "WITH_QUOTES": """it's "quoted" and \\ `ticked` """,
    "WITH_DOLLARS": "$HOME ${PATH} $(id) $$",
    "WITH_UNICODE": "Grüße 漢字 🙂",
    "lower_case": "kept",
    "WITH_EQUALS": "a=b #c;d&e|f",
    "LEADING": "  \t spaces \t ",
    "EMPTY": "",
    **_random_values(60),
}


@pytest.fixture(scope="module")
def story(cluster: Cluster, table: Path, tmp_path_factory: pytest.TempPathFactory) -> Case:
    """A run of two hosts whose home, data, comment and environment are full of traps."""
    folder = tmp_path_factory.mktemp("hostile") / FOLDER
    folder.mkdir()
    copy = folder / "data;rm -rf $X" / "it's.tsv"
    copy.parent.mkdir()
    copy.write_bytes(table.read_bytes())
    user = User(cluster, copy, folder / "home")
    user.install_probe()
    setup = """export FROM_SETUP="$(printf 'set up: %s' "it's")" """
    # A colon would part the probe's folder in two; this one holds none.
    run, job_id = user.submit(
        "quick",
        "resources.nodes=2",
        f"resources.comment={_literally(COMMENT)}",
        f"resources.environment={_literally(ENVIRONMENT)}",
        f"resources.setup={_literally([setup])}",
        env={"PYTHONPATH": str(user.home / "probe"), "INHERITED": "a,b\nc"},
    )
    user.wait_until_finished(run, job_id)
    return Case(user, run, job_id)


def _literally(value: object) -> str:
    """A value for the command line in which ${…} is not a reference but the text itself."""
    text = json.dumps(value, ensure_ascii=False).replace("${", "\\\\${")
    # YAML takes these for line breaks, and for the mark at the beginning of a file.
    return re.sub("[\x85\u2028\ufeff]", lambda found: f"\\u{ord(found[0]):04x}", text)


@pytest.mark.slow
def test_run_trains_in_a_folder_with_a_hostile_name(story: Case, quick_alone: RunDir) -> None:
    assert story.run.path.parent == story.user.runs
    assert weights(story.run) == weights(quick_alone)
    assert story.user.job_folders() == [str(story.run.path)]
    logs = {log.name for log in story.run.logs.iterdir()}
    assert logs >= {f"{story.job_id}.batch.log", *(f"{story.job_id}.0.0.rank_0000{n}.log" for n in (0, 1))}


def test_ranks_use_the_code_of_the_run_folder(story: Case) -> None:
    for environment in story.user.environments_of_ranks():
        assert environment["PYTHONPATH"].split(":")[0] == str(story.run.code)


def test_each_variable_reaches_every_rank_through_sbatch_unchanged(story: Case) -> None:
    environments = story.user.environments_of_ranks()
    # One by one: pytest would print the difference of all.
    for name, value in ENVIRONMENT.items():
        assert [environment.get(name) for environment in environments] == [value] * 2, name


def test_exports_of_setup_lines_and_of_the_submitting_shell_reach_every_rank(story: Case) -> None:
    for environment in story.user.environments_of_ranks():
        assert environment["FROM_SETUP"] == "set up: it's"
        assert environment["INHERITED"] == "a,b\nc"


def test_the_comment_reaches_slurm_unchanged(story: Case) -> None:
    shown = story.user.run("squeue", "--noheader", "--states=all", f"--jobs={story.job_id}", "--format=%k")
    assert shown.stdout.rstrip("\n") == COMMENT
    assert not Path("/tmp/never").exists()
