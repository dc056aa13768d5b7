"""A folder in which the spelling study's scripts can be run, with a stand-in for `stk`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.docs.readme import ROOT
from tests.scripts.study_files import pretend_prepared
from toolkit.config import load
from toolkit.config.schema import Experiment

SCRIPTS = ROOT / "scripts"
#: Stands for stk: notes how it was called, and what a config would read. What only shows runs is done.
STK = f"""\
#!{sys.executable}
import json, os, sys
words = sys.argv[1:]
if words[0] == "plan" or "--dry-run" in words:
    os.execv(sys.executable, [sys.executable, "-m", "slurm", *words])
seen = {{name: value for name, value in os.environ.items() if name.startswith("STK_")}}
with open(os.environ["CALLS"], "a") as calls:
    print(json.dumps([words, seen]), file=calls)
if os.environ.get("FAILS", "nothing") in words and words[0] in ("run", "submit"):
    sys.exit(int(os.environ.get("FAILS_WITH", "4")))
if words[0] in ("submit", "sweep", "run") and os.environ.get("STUDY_RUNS"):
    # Others start from it: its folder is there, and after training here its weights, which have the two
    # sizes that are compared: 64 values of a vector, 99 tokens.
    from pathlib import Path
    from toolkit.config import load
    from toolkit.run.create_run import create_run
    from toolkit.files import write_json
    varied = "model.word_features=true,false"
    for value in ("true", "false") if varied in words else ("",):
        given = [f"model.word_features={{value}}" if word == varied else word for word in words[2:]]
        run = create_run(load(Path(words[1]), given), Path(os.environ["STK_EXPERIMENT_DIR"]))
        if "resources.requeue=same_job" not in words:
            sizes = {{name: {{"dtype": "F32", "shape": [rows]}} for name, rows in (("v", 64), ("w", 99))}}
            sizes["v"]["data_offsets"], sizes["w"]["data_offsets"] = [0, 256], [256, 652]
            header = json.dumps(sizes).encode()
            run.checkpoint(1).mkdir(parents=True)
            weights = len(header).to_bytes(8, "little") + header + bytes(652)
            (run.checkpoint(1) / "model.safetensors").write_bytes(weights)
            write_json(run.result, {{"best": {{"step": 1}}}})
if words[0] == "prepare":
    print(json.dumps({{"job_id": "prepared"}}))
if words[0] == "status" and "--json" in words:
    runs = [os.path.basename(word) for word in words[2:]]
    print(json.dumps([{{"job_id": run.rpartition("-")[0], "state": "pending"}} for run in runs]))
"""


class Study:
    """A folder in which the scripts can be run, with a stand-in for stk."""

    def __init__(self, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.home = home
        self._monkeypatch = monkeypatch
        pretend_prepared(home / "data")
        self._program("stk", STK)
        self._program("scontrol", "#!/bin/sh\nexit 0\n")
        self._program("sinfo", "#!/bin/sh\nexit 0\n")
        self._program("sbatch", '#!/bin/sh\nprintf \'%s\\n\' "$@" >"$CALLS.sbatch"; echo 99\n')
        self._program("environment/bin/pip", "#!/bin/sh\nexit 0\n")
        self.environment = {
            "PATH": f"{home}:{os.environ['PATH']}",
            "CALLS": str(home / "calls"),
            "VIRTUAL_ENV": str(home / "environment"),
            "STK_DATA_DIR": str(home / "data"),
            "STK_EXPERIMENT_DIR": str(home / "experiments"),
            "STK_REPAIR_RUN": str(home / "experiments" / "repair"),
        }

    def _program(self, name: str, text: str) -> None:
        path = self.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)

    def leave_out(self, script: str) -> None:
        """Let scripts/SCRIPT do nothing: other tests run it."""
        text = f'#!/bin/sh\ncase "$1" in */{script}) exit 0 ;; esac\nexec {sys.executable} "$@"\n'
        for name in ("python", "python3"):
            self._program(name, text)

    def run(self, script: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        (self.home / "calls").unlink(missing_ok=True)
        return subprocess.run(
            [SCRIPTS / (script if "." in script else f"train_slurm_{script}.sh"), *arguments],
            env={**self.environment, **environment},
            capture_output=True,
            text=True,
        )

    def calls(self) -> list[tuple[list[str], dict[str, str]]]:
        """What stk was called with, and the variables that it saw; not what only shows."""
        path = self.home / "calls"
        lines = path.read_text().splitlines() if path.exists() else []
        return [(words, seen) for words, seen in map(json.loads, lines) if words[0] != "status"]

    def experiments(self) -> list[Experiment]:
        """The experiments of all runs that were submitted."""
        started = [call for call in self.calls() if call[0][0] in ("submit", "sweep", "run")]
        return [each for words, seen in started for each in self._of(words[1], words[2:], seen)]

    def _of(self, config: str, overrides: list[str], seen: Mapping[str, str]) -> Iterator[Experiment]:
        with self._monkeypatch.context() as patch:
            patch.chdir(ROOT)
            for name, value in seen.items():
                patch.setenv(name, value)
            for combination in combinations(overrides):
                yield load(Path(config), combination)


def combinations(overrides: list[str]) -> list[list[str]]:
    """The overrides of each run of a sweep over one key."""
    for place, each in enumerate(overrides):
        key, _, values = each.partition("=")
        if key == "model.word_features":
            rest = overrides[:place] + overrides[place + 1 :]
            return [[*rest, f"{key}={value}"] for value in values.split(",")]
    return [overrides]
