"""stk prepare: builds the data once, and says what they hold."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.slurm.house import ROOT, House
from tests.toolkit.entity_files import write_entity_experiment


def test_what_was_built_is_told_in_a_line(house: House) -> None:
    (house.root / "reviews.tsv").write_text(
        "text\tlabel\n" + "a film\tgood\n" * 50 + "a film\tgodo\n \tgood\n"
    )
    first = house.call("prepare", house.config, "data.labels=[good]")
    (path,) = (house.root / "prepared").glob("reviews-*")
    assert (first.code, first.err) == (0, "")
    assert first.out.splitlines() == [
        f"prepared: train 40, validation 5, test 5; 1 labels, 4 tokens; {path}",
        f"left out 1 rows with unknown labels: 'godo' 1; one is {house.root}/reviews.tsv:52",
        f"left out 1 rows without a text, from {house.root}/reviews.tsv:53 on",
    ]
    second = house.call("prepare", house.config, "data.labels=[good]")
    assert second.out.splitlines()[0].startswith("was prepared before: train 40,")
    assert second.out.splitlines()[1:] == first.out.splitlines()[1:]


def test_fragments_are_told_apart_from_texts(house: House) -> None:
    answer = house.call("prepare", house.config, "data.max_tokens=2", "data.fold=word", "--json")
    found = json.loads(answer.out)
    assert found["samples"] == sum(found["splits"].values()) > found["texts"] == 120
    told = house.call("prepare", house.config, "data.max_tokens=2", "data.fold=word").out
    assert " from 120 texts; 2 labels, " in told


def test_json_is_one_document_with_what_was_left_out(house: House) -> None:
    (house.root / "reviews.tsv").write_text("text\tlabel\n" + "a film\tgood\n" * 50 + "a film\tgodo\n")
    answer = house.call("prepare", house.config, "data.labels=[good]", "--json")
    found = json.loads(answer.out)
    assert answer.err == ""
    assert Path(found["path"]).is_dir()
    assert (found["built"], found["splits"]) == (True, {"train": 40, "validation": 5, "test": 5})
    assert found["skipped"]["unknown_labels"] == {
        "rows": 1,
        "labels": [{"label": "godo", "rows": 1, "first": f"{house.root}/reviews.tsv:52"}],
    }
    assert not json.loads(house.call("prepare", house.config, "data.labels=[good]", "--json").out)["built"]


def test_a_fault_in_the_data_is_a_message_and_leaves_nothing(house: House) -> None:
    (house.root / "reviews.tsv").write_text("text\tlabel\na film\n")
    answer = house.call("prepare", house.config)
    assert (answer.code, answer.out) == (2, "")
    assert "reviews.tsv:2: 1 fields, expected 2" in answer.err
    assert list((house.root / "prepared").glob("[!.]*")) == []


def test_a_table_is_prepared_without_torch(house: House) -> None:
    """So that it answers at once."""
    program = (
        "import sys\nfrom slurm.cli import main\ncode = main(sys.argv[1:])\n"
        "print(code, [name for name in ('torch', 'transformers') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, "prepare", str(house.config)],
        cwd=house.root, env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.splitlines()[-1] == "0 []"


def test_mentions_are_prepared_without_torch_and_told_with_their_slices(tmp_path: Path) -> None:
    config = write_entity_experiment(tmp_path)
    program = (
        "import sys\nfrom slurm.cli import main\ncode = main(sys.argv[1:])\n"
        "print(code, [name for name in ('torch', 'transformers') if name in sys.modules])"
    )
    command = [sys.executable, "-c", program, "prepare", str(config), "--json"]
    answers = [
        subprocess.run(
            command, cwd=tmp_path, env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=True
        ).stdout.splitlines()
        for _ in range(2)
    ]
    first, second = (json.loads(answer[0]) for answer in answers)
    assert answers[0][-1] == "0 []"
    assert (first["built"], second["built"]) == (True, False)
    assert first["splits"] == {"train": 61, "validation": 23, "test": 11}
    assert first["slice_sizes"]["unif_NS_all"] == first["splits"]
    assert first["path"] == second["path"]
