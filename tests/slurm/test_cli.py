"""The command line: help, arguments, and one clear message for each bad input."""

from __future__ import annotations

import argparse
import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from slurm.cli import main
from slurm.commands.runs import status
from slurm.status.filters import ORDERS
from tests.slurm.support.user import CONFIG, Answer, User, reviews
from tests.support.mounts import read_only
from toolkit import registry
from toolkit.run.run_dir import RunDir

COMMANDS = ("plan", "submit", "run", "resume", "status", "logs", "report", "cancel", "prepare")


def test_the_help_names_every_command(user: User) -> None:
    said = user.told("--help")
    for command in COMMANDS:
        assert f"\n    {command} " in said


def test_the_help_names_commands_of_workloads_below_those_of_the_core(user: User) -> None:
    answer = user.stk("--help")
    core, *of_workloads = re.split(r"^commands of (.+):$", answer.out, flags=re.MULTILINE)
    found = dict(zip(of_workloads[::2], of_workloads[1::2], strict=True))
    for workload, commands in registry.commands().items():
        shown = found[workload.replace("_", " ")]
        assert re.findall(r"^    (\S+)  ", shown, re.MULTILINE) == list(commands)
        assert not set(commands) & set(re.findall(r"^    (\S+)  ", core, re.MULTILINE))


@pytest.mark.parametrize("word, meant", [("statsu", "status"), ("sumbit", "submit"), ("zzz", None)])
def test_unknown_command_suggests_the_nearest(user: User, word: str, meant: str | None) -> None:
    answer = user.stk(word)
    assert (answer.code, answer.out) == (2, "")
    assert word in answer.err
    assert ("did you mean" in answer.err) == (meant is not None)
    assert f"{meant}?" in answer.err or meant is None


def test_key_with_dashes_is_refused_with_a_hint(user: User) -> None:
    answer = user.stk("plan", "digits.yaml", "--train.epochs=3")
    assert "keys have no dashes" in answer.err


@pytest.mark.parametrize("command, is_hinted", [("submit", True), ("run", True), ("status", False)])
def test_dry_run_of_a_command_without_it_is_refused_with_a_hint(
    user: User, command: str, is_hinted: bool
) -> None:
    assert ("stk plan" in user.refused(command, "--dry-run", "digits.yaml")) == is_hinted


def test_key_for_a_run_that_continues_is_answered_with_ways_to_change_it(user: User) -> None:
    answer = user.refused("resume", "tiny", "train.epochs=3")
    assert "train.epochs=3" in answer
    assert "train.start_from_checkpoint" in answer


def test_the_help_of_status_explains_each_order_in_that_of_the_choices(user: User) -> None:
    said = user.told("status", "--help").partition("order:")[2]
    places = [re.search(rf"\b{re.escape(order)}\b", said) for order in ORDERS]
    assert [place and place.start() for place in places] == sorted(place.start() for place in places if place)


@pytest.mark.parametrize("given", ["run env", "run python", "submit env --lr 3", "sweep status no_sweep"])
def test_a_word_that_may_name_a_run_a_file_or_an_action_is_no_command(user: User, given: str) -> None:
    user.write("env.yaml", CONFIG)
    assert " -- " not in user.refused(*given.split()).replace("-- and a command", "")


def test_a_run_with_the_name_of_a_program_is_no_command(user: User) -> None:
    (user.experiments / "env-00000000").mkdir(parents=True)
    assert "env --freshh" not in user.refused("run", "env", "--freshh")


@pytest.mark.parametrize(
    "words, is_looked_up",
    [
        (["status"], False),
        (["logs", "nowhere"], False),
        (["status", "--help"], False),
        (["--help"], True),
        (["of-a-workload"], True),
    ],
)
def test_workloads_are_looked_up_only_for_their_commands(
    user: User, words: list[str], is_looked_up: bool
) -> None:
    program = (
        "import sys\nfrom toolkit import registry\n"
        "registry.entry_points = lambda: sys.exit('looked up')\n"
        "from slurm.cli import main\nmain(sys.argv[1:])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *words], capture_output=True, text=True, check=False
    )
    assert ("looked up" in done.stderr) == is_looked_up


@pytest.mark.parametrize("command", ["plan", "submit", "run", "prepare"])
def test_the_help_shows_how_a_key_is_set(user: User, command: str) -> None:
    assert "key.path=value" in user.stk(command, "--help").out


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["report"],
        ["submit", "tiny.yaml", "--cluster", "cloud"],
        ["run", "tiny.yaml", "--procs", "two"],
        ["logs", "a", "b"],
        ["resume", "a", "seed=1"],
    ],
)
def test_unknown_or_missing_arguments_are_refused(user: User, arguments: list[str]) -> None:
    answer = user.stk(*arguments)
    assert answer.code == 2
    assert answer.out == ""
    assert "error: " in answer.err
    assert "Traceback" not in answer.err


@pytest.mark.parametrize("command", ["plan", "submit", "run", "sweep", "prepare"])
def test_a_command_without_its_experiment_says_what_is_missing(user: User, command: str) -> None:
    last = user.refused(command).splitlines()[-2:]
    assert "CONFIG" in last[0]
    assert "key=" not in last[0]
    assert f"stk {command} --help" in last[1]


def test_keys_may_stand_before_and_after_options(user: User) -> None:
    answer = user.stk("plan", user.config, "seed=1", "--json", "train.epochs=3", "seed=2")
    config = json.loads(answer.out)["config"]
    assert (config["seed"], config["train"]["epochs"]) == (2, 3)


def test_closed_output_pipe_is_no_error(user: User) -> None:
    process = user.start("plan", user.config)
    process.stdout.close()
    assert process.stderr.read() == ""
    assert process.wait(60) == 0
    process.stderr.close()


def test_ctrl_c_exits_with_130(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(arguments: argparse.Namespace) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr("slurm.commands.runs.status.run", interrupted)
    assert main(["status"]) == 130


def test_ctrl_c_during_the_imports_exits_with_130_and_without_a_traceback() -> None:
    program = """
import sys
from importlib.machinery import PathFinder
from slurm.__main__ import main

class Interrupted(PathFinder):
    @classmethod
    def find_spec(cls, fullname, path=None, target=None):
        if fullname == "slurm.cli":
            raise KeyboardInterrupt

sys.meta_path.insert(0, Interrupted)
sys.argv = ["stk", "status"]
sys.exit(main())
"""
    ended = subprocess.run([sys.executable, "-P", "-c", program], capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (130, "")


# -- bad input -----------------------------------------------------------------------------------

#: What is written into tiny.yaml, the arguments after it, and what the message must name.
BAD_CONFIGS: dict[str, tuple[str | None, list[str], list[str]]] = {
    "missing": (None, [], ["tiny.yaml"]),
    "not yaml": ("name: [tiny\n", [], ["tiny.yaml:"]),
    "unknown key": (CONFIG + "optimiser: {lr: 1}\n", [], ["optimiser", "optimizer"]),
    "override without a value": (CONFIG, ["train.epochs"], ["train.epochs"]),
    "more processes than work": (CONFIG, ["resources.nodes=99"], ["train.batch_size", "99"]),
}  # fmt: skip


@pytest.mark.parametrize("command", ["plan", "submit", "run"])
@pytest.mark.parametrize("case", BAD_CONFIGS)
def test_bad_config_is_reported_once_and_nothing_is_written(user: User, case: str, command: str) -> None:
    text, arguments, named = BAD_CONFIGS[case]
    if text is None:
        user.config.unlink()
    else:
        user.config.write_text(text)
    before = user.listing
    check_refusal(user.stk(command, user.config.name, *arguments), named)
    assert user.listing == before


def check_refusal(answer: Answer, named: list[str]) -> None:
    assert (answer.code, answer.out, answer.err.count("error: ")) == (2, "", 1)
    assert answer.err.startswith("error: ")
    assert "Traceback" not in answer.err
    for word in named:
        assert word in answer.err


def test_all_faults_of_a_config_come_in_one_message(user: User) -> None:
    user.config.write_text(CONFIG + "optimiser: {}\n")
    answer = user.stk("submit", user.config, "train.epochs=0", "resources.time=soon")
    check_refusal(answer, ["optimiser", "train.epochs", "resources.time", "command line"])


#: What reviews.tsv holds (None: it is missing), the arguments, and what the message must name.
BAD_DATA: dict[str, tuple[bytes | None, list[str], list[str]]] = {
    "missing": (None, [], ["reviews.tsv", "does not exist"]),
    "no such column": (reviews().encode(), ["data.label_column=lable"], ["'lable'", "text, label"]),
    "a folder": (None, ["data.path=folder.tsv"], ["folder.tsv is a folder"]),
}  # fmt: skip


def check_bad_data(
    user: User, command: list[str], content: bytes | None, arguments: list[str], named: list[str]
) -> None:
    """Data that cannot be used are told once, before anything is started."""
    table = user.root / "reviews.tsv"
    table.unlink()
    (user.root / "folder.tsv").mkdir()
    if content is not None:
        table.write_bytes(content)
    before = user.listing
    check_refusal(user.stk(*command, user.config, *arguments), named)
    assert user.listing == before


@pytest.mark.parametrize("command", [["run"], ["submit", "--cluster", "local"]], ids=["run", "submit"])
@pytest.mark.parametrize("case", BAD_DATA)
def test_bad_data_are_reported_once_before_any_start(user: User, case: str, command: list[str]) -> None:
    check_bad_data(user, command, *BAD_DATA[case])


@pytest.mark.parametrize("command", [["run"], ["submit", "--cluster", "local"]], ids=["run", "submit"])
def test_file_in_place_of_the_experiment_folder_is_reported(user: User, command: list[str]) -> None:
    user.experiments.write_text("I was here first")
    check_refusal(user.stk(*command, user.config), [str(user.experiments), "STK_EXPERIMENT_DIR"])
    assert user.experiments.read_text() == "I was here first"


@pytest.fixture
def unwritable(user: User) -> Iterator[str]:
    """Make the experiment folder one that cannot be written; give the system's word for why."""
    user.experiments.mkdir()
    with read_only(user.experiments):
        yield "Permission denied" if os.geteuid() else "Read-only file system"


def test_unwritable_experiment_folder_is_reported(user: User, unwritable: str) -> None:
    answer = user.stk("submit", user.config, "--cluster", "local")
    check_refusal(answer, [str(user.experiments), unwritable])
    assert list(user.experiments.iterdir()) == []


def test_deleted_working_directory_is_reported(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("STK_EXPERIMENT_DIR", raising=False)
    gone = user.root / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    answer = user.stk("status")
    monkeypatch.chdir(user.root)
    check_refusal(answer, ["the working directory"])


def test_another_error_that_names_no_file_is_not_taken_for_a_deleted_directory(
    user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(arguments: argparse.Namespace) -> int:
        with socket.socket(socket.AF_UNIX) as client:
            client.connect("missing")
        return 0

    monkeypatch.setattr(status, "run", run)
    with pytest.raises(FileNotFoundError):
        user.stk("status")


def test_an_edited_run_is_not_continued(user: User, run: RunDir) -> None:
    """Its numbers would belong to two experiments."""
    run.config.write_text(run.config.read_text().replace("epochs: 1", "epochs: 7"))
    for command in (
        ["run", user.config],
        ["submit", user.config, "--cluster", "local"],
        ["resume", run.path],
    ):
        check_refusal(user.stk(*command), [run.run_id])


def test_the_command_and_the_module_are_the_same(user: User) -> None:
    answer = user.call("plan", user.config, "--json")
    assert answer.code == 0
    assert json.loads(answer.out) == json.loads(user.stk("plan", user.config, "--json").out)
    assert Path(sys.executable).name in json.loads(answer.out)["script"]


@pytest.mark.parametrize("command, is_short", [("plan", True), ("run", False)])
def test_a_process_that_may_train_keeps_its_threads_and_its_garbage_collection(
    command: str, is_short: bool
) -> None:
    program = f"""
import gc, os, sys
from slurm.__main__ import main
from toolkit.system.numpy_import import import_numpy
before = gc.get_threshold()
sys.argv = ["stk", "{command}", "--help"]
try:
    main()
except SystemExit:
    pass
import_numpy()
print("numpy" in sys.modules, gc.get_threshold() != before)
"""
    environment = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
    said = subprocess.check_output([sys.executable, "-P", "-c", program], env=environment, text=True)
    assert said.splitlines()[-1] == f"{is_short} {is_short}"
