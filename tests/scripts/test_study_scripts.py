"""The scripts of the studies; that of DocNN starts a run for each tokenizer and seed, and one for SST-2."""

from __future__ import annotations

import pytest

from tests.scripts.spelling_study import SCRIPTS, Study


@pytest.mark.parametrize("script", [path.name for path in sorted(SCRIPTS.glob("*_slurm_*.sh"))])
def test_help_of_a_study_script_is_its_first_comment_and_starts_nothing(study: Study, script: str) -> None:
    shown = study.run(script, "seed=1", "--help")
    assert shown.returncode == 0
    assert len(shown.stdout.splitlines()) > 4
    assert all(f"# {line}".rstrip() in (SCRIPTS / script).read_text() for line in shown.stdout.splitlines())
    assert study.calls() == []


def test_docnn_study_starts_three_seeds_of_each_tokenizer_and_one_run_of_sst2(study: Study) -> None:
    study.leave_out("get_movie_reviews")
    sst2 = study.home / "data/sst2/train.tsv"
    sst2.parent.mkdir()
    sst2.touch()
    done = study.run("docnn", "train.epochs=1")
    assert done.returncode == 0, done.stderr
    assert [words[0] for words, _ in study.calls()] == ["submit"] * 7
    *reviews, sentences = study.experiments()
    found = [(each.name, each.data.tokenizer, each.seed) for each in reviews]
    assert found == [(f"docnn-{name}", name, seed) for name in ("whitespace", "words") for seed in range(3)]
    assert sentences.name == "sst2"
    assert {each.train.epochs for each in (*reviews, sentences)} == {1}
