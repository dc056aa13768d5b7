"""The arguments of a command, from a command line and from parameters."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm.commands.command_line import with_file
from slurm.submission.checks.early_checks import check_before_queue
from toolkit.config import check, load
from toolkit.config.identity import identity
from toolkit.run.run_dir import RunDir
from toolkit.workloads.custom.command.words import experiment_of, params_json, words_of

RUN = RunDir(Path("/runs/train-1"))


def command(*run: str, **keys: Any) -> Any:
    return check({"name": "train", "task": {"kind": "command", "run": list(run)}, **keys})


@pytest.mark.parametrize(
    "params, words",
    [
        ({"lr": 0.001, "epochs": 3}, ["--lr", "0.001", "--epochs", "3"]),
        ({"amp": True, "fast": False, "seed": None}, ["--amp"]),
        ({"betas": [0.9, 0.99], "names": []}, ["--betas", "0.9", "0.99", "--names"]),
        ({"out": "${run.dir}/out", "flags": [True]}, ["--out", "/runs/train-1/out", "--flags", "true"]),
    ],
)
def test_parameters_become_options(params: dict[str, Any], words: list[str]) -> None:
    assert words_of(command("python", "train.py", params=params), RUN) == ["python", "train.py", *words]


def test_negative_numbers_are_values_for_argparse() -> None:
    values = [-1e-5, -1.5e-7, -2.5, -3, -1e16, -5e-324]
    words = words_of(command("a", params={"low": values[0], "all": values}), RUN)
    parser = ArgumentParser()
    parser.add_argument("--low", type=float)
    parser.add_argument("--all", type=float, nargs="+")
    assert vars(parser.parse_args(words[1:])) == {"low": values[0], "all": values}


def test_all_parameters_are_also_handed_over_as_json() -> None:
    params = {"amp": False, "lr": 0.5, "out": "${run.dir}"}
    assert json.loads(params_json(command("a", params=params), RUN)) == {**params, "out": "/runs/train-1"}


def test_run_dir_is_replaced_in_an_experiment_file(tmp_path: Path) -> None:
    file = tmp_path / "train.yaml"
    file.write_text(
        "name: train\ntask: {kind: command, run: [a, '${run.dir}/${params.x}']}\n"
        "params: {x: 1, y: '${run.dir}'}\n"
    )
    assert words_of(load(file), RUN) == ["a", "/runs/train-1/1", "--x", "1", "--y", "/runs/train-1"]


def test_absolute_path_of_a_script_is_replaced_by_the_copy_of_the_run(tmp_path: Path) -> None:
    """Also one that leads through a link to the folder."""
    folder, run = tmp_path / "mine", RunDir(tmp_path / "run")
    kept, other, data = (str(folder / name) for name in ("train.py", "other.py", "data.csv"))
    linked = str(tmp_path / "home" / "train.py")
    for name in ("train.py", "data.csv"):
        (run.user_code / name).parent.mkdir(parents=True, exist_ok=True)
        (run.user_code / name).touch()
    task = {"kind": "command", "run": ["python", kept, linked, other, data, "/x.py"], "folder": str(folder)}
    folder.mkdir()
    (tmp_path / "home").symlink_to(folder)
    experiment = check({"name": "train", "task": task, "code": [str(folder)]})
    copy = str(run.work / "train.py")
    assert words_of(experiment, run) == ["python", copy, copy, other, data, "/x.py"]


def test_relative_path_outside_the_folder_refers_to_the_user_folder(tmp_path: Path) -> None:
    up = f"{tmp_path}/.."
    outside = {
        "../data": f"{up}/data",
        "--data=../data/a.csv": f"--data={up}/data/a.csv",
        "data.root=../data": f"data.root={up}/data",
        "+data.root=../data": f"+data.root={up}/data",
        "..": up,
    }
    others = ["...", "..a", "a/../b", "-c", "ls ../data"]
    task = {"kind": "command", "run": ["cat", *outside, *others], "folder": str(tmp_path)}
    params = {"more": ["../x", 1], "text": "../x y"}
    experiment = check({"name": "train", "task": task, "code": [str(tmp_path)], "params": params})
    options = ["--more", f"{up}/x", "1", "--text", f"{up}/x y"]
    assert words_of(experiment, RUN) == ["cat", *outside.values(), *others, *options]


#: Arguments that a process can get, except those that are replaced.
WORDS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20).filter(
    lambda word: "${run.dir}" not in word and ".." not in word and word != "???"
)


@given(st.lists(WORDS, max_size=4))
def test_arguments_reach_the_command_unchanged(words: list[str]) -> None:
    path = Path(with_file(["run", "--", "python", *words])[1])
    assert words_of(load(path), RUN) == ["python", *words]


@pytest.mark.parametrize(
    "words, name, launch",
    [
        (["python", "train.py", "--lr", "1"], "train", "each"),
        (["python3", "-m", "package.module"], "module", "each"),
        (["./scripts/run it.sh"], "run-it", "each"),
        (["/usr/bin/true"], "true", "each"),
        (["..."], "command", "each"),
        (["/opt/bin/torchrun", "--nproc-per-node", "2", "a/b.py"], "b", "node"),
        (["uv", "run", "torchrun", "train.py"], "train", "node"),
        (["python", "-m", "torch.distributed.run", "train.py"], "train", "node"),
        (["python", "-u", "-m", "torch.distributed.launch", "train.py"], "train", "node"),
        (["uv", "run", "--with", "x", "python", "-m", "torch.distributed.run", "train.py"], "train", "node"),
        (["apptainer", "exec", "--nv", "a.sif", "accelerate", "launch", "train.py"], "train", "node"),
        (["uv", "run", "--no-sync", "accelerate", "launch", "train.py"], "train", "node"),
        (["docker", "run", "deepspeed/deepspeed", "python", "train.py"], "train", "each"),
        (["/home/u/.pyenv/shims/torchrun", "train.py"], "train", "node"),
        (["litgpt", "finetune", "--strategy", "deepspeed"], "litgpt", "each"),
        (["litgpt", "finetune", "--engine", "deepspeed", "--lr", "1"], "litgpt", "each"),
        *(
            ([*wrapper, "deepspeed", *rest, "train.py"], "train", "node")
            for wrapper in (
                ["uv", "run", "--no-sync"],
                ["conda", "run", "-n", "ds", "--live-stream"],
                ["poetry", "run", "-q"],
            )
            for rest in ([], ["--num_gpus", "2"])
        ),
        (["uv", "run", "--no-sync", "deepspeed", "--module", "package.train"], "uv", "node"),
        (["uv", "run", "--with", "deepspeed", "train.py"], "train", "each"),
        (["conda", "run", "-n", "deepspeed", "--live-stream", "python", "train.py"], "train", "each"),
        *(
            ([*words.split(), "train.py"], "train", "each")
            for words in (
                "uv run --directory deepspeed",
                "uv run --no-group deepspeed",
                "uv run --project deepspeed",
                "pdm run --venv deepspeed",
                "pixi run --environment deepspeed",
                "conda run --prefix deepspeed --live-stream python",
                "docker run -w deepspeed --gpus all img python",
                "docker run --gpus=all deepspeed --entry",
                "srun --container-name deepspeed --mpi=pmix python",
                "apptainer exec --nv deepspeed",
                "litgpt finetune --engine deepspeed --script",
                "fabric run model --accelerator deepspeed",
                "fabric run --strategy deepspeed",
                "python -m deepspeed",
            )
        ),
        *(
            ([*words.split(), "train.py"], "train", "node")
            for words in (
                "nice -n 5 /opt/ds/torchrun",
                "env FOO=1 ./torchrun",
                "nohup ~/ds/deepspeed",
                "uv run ./scripts/accelerate launch",
                "python /opt/ds/deepspeed",
                "uv run -- deepspeed",
                "nice /opt/ds/torchrun ./train",
                "apptainer exec --nv a.sif /opt/ds/torchrun --standalone",
                "apptainer exec --nv a.sif /opt/ds/accelerate launch",
                "apptainer exec --nv a.sif ./deepspeed",
            )
        ),
        *(
            (["apptainer", "exec", image, "python", "train.py"], "train", "each")
            for image in ("/images/deepspeed", "./torchrun", "~/torchrun")
        ),
        (["./torchrun", "train.py"], "train", "node"),
        (["nice", "/home/u/.pyenv/shims/torchrun", "train.py"], "train", "node"),
        (["python", "train.py", "torchrun"], "train", "each"),
        (["uv", "run", "--with", "accelerate", "train.py"], "train", "each"),
        (["python", "-m", "train", "--backend", "deepspeed"], "train", "each"),
        (["conda", "run", "-n", "deepspeed", "python", "-m", "train"], "train", "each"),
        (["python", "-m", "train", "torchrun"], "train", "each"),
    ],
)
def test_the_run_is_named_after_the_script(words: list[str], name: str, launch: str) -> None:
    found = experiment_of(words)
    assert (found["name"], found["task"]["launch"]) == (name, launch)


def test_identity_depends_on_command_params_and_inputs_but_not_on_code(tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    first = identity(command("a"))
    others = [command("b"), command("a", params={"lr": 1}), command("a", inputs=[str(tmp_path / "a")])]
    assert len({first, *map(identity, others)}) == 4
    folder = {"kind": "command", "run": ["a"], "folder": str(tmp_path)}
    elsewhere = check({"name": "train", "task": folder, "code": [str(tmp_path / "a")]})
    assert identity(elsewhere) == first


def warned_of(words: str, **keys: Any) -> bool:
    return any(command(*words.split(), **keys).warnings_of_several_ranks)


@pytest.mark.parametrize(
    "words",
    [
        "torchrun --nproc-per-node 2 train.py",
        "torchrun --nnodes=1 --nproc-per-node 2 train.py",
        "torchrun --nnodes 1 train.py",
        "uv run torchrun --standalone train.py",
        "python -m torch.distributed.run train.py",
        "python -m torch.distributed.launch train.py",
        "deepspeed train.py",
    ],
)
def test_launcher_on_each_of_several_ranks_is_found(words: str) -> None:
    task = {"kind": "command", "run": words.split(), "launch": "node"}
    assert warned_of(words)
    assert not warned_of(words, resources={"environment": {"PET_NNODES": "2"}})
    assert not any(check({"name": "train", "task": task}).warnings_of_several_ranks)


@pytest.mark.parametrize(
    "words",
    [
        "python train.py",
        "torchrun --nnodes 2 --rdzv-backend c10d --rdzv-endpoint a:29400 train.py",
        "torchrun --nnode=1:2 train.py",
        "torchrun --nnodes=16 train.py",
        "accelerate launch --multi_gpu train.py",
        "accelerate launch --num_processes 2 train.py",
    ],
)
def test_launcher_that_may_know_of_the_other_ranks_is_not_found(words: str) -> None:
    assert not warned_of(words)


def test_launcher_of_several_ranks_is_named_before_the_queue() -> None:
    one, two = (command("torchrun", "train.py", resources={"nodes": nodes}) for nodes in (1, 2))
    assert "task.launch=node" in "".join(check_before_queue(two, None, "slurm"))
    for experiment, cluster in ((one, "slurm"), (two, "local")):
        assert "task.launch" not in "".join(check_before_queue(experiment, None, cluster))
