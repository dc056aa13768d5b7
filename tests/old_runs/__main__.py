"""Makes an archive of runs with the code of a commit: python -m tests.old_runs COMMIT

The commit's own `stk` trains here, in a temporary folder. reviews finishes, with one process; misspelt is
asked to stop in the middle, with two.
The experiments that the commit ships are kept as their runs would have stored them.
"""

from __future__ import annotations

import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path, PurePath

from tests.old_runs import experiments
from tests.old_runs.unpacking import ARCHIVES, SHIPPED, STOPPED
from tests.support.registering import ROOT, own_environment

#: Can be made again, or is of no use to a run that goes on.
_LEFT_OUT = ("experiments/*/report", "experiments/*/tensorboard", "__pycache__", "*.lock")
_INTERRUPTED = 130
#: What the shipped experiments want to know; nothing of it is looked at.
_VARIABLES = {
    "STK_DATA_DIR": "/data",
    "STK_REPAIR_RUN": "/runs/repair",
    "STK_START_FROM_CHECKPOINT": "/runs/first",
}
_STORE = """
import sys
from pathlib import Path
from toolkit.config import load, run_id, to_yaml
for name in sys.argv[2:]:
    experiment = load(Path(name))
    (Path(sys.argv[1]) / f"{run_id(experiment)}.yaml").write_text(to_yaml(experiment))
"""


def make(commit: str) -> Path:
    """Train with a commit's code, and pack what it leaves; return the archive."""
    name = _git("rev-parse", "--short", commit).decode().strip()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        _check_out(commit, place / "old")
        experiments.write(place)
        _stk(place, "run", "reviews.yaml")
        _stk(place, "run", "misspelt.yaml", "--procs", "2", faults=STOPPED)
        _store_shipped(place)
        archive = ARCHIVES / f"{name}.tar.xz"
        with tarfile.open(archive, "w:xz", preset=9) as packed:
            for each in ("experiments", SHIPPED):
                packed.add(place / each, each, filter=_kept)
    return archive


def _check_out(commit: str, folder: Path) -> None:
    folder.mkdir()
    packed = _git("archive", commit, "slurm", "toolkit", "configs")
    subprocess.run(["tar", "-x", "-C", folder], input=packed, check=True)


def _git(*words: str) -> bytes:
    return subprocess.run(["git", *words], cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout


def _stk(place: Path, *words: str, faults: str = "") -> None:
    """Run the old command, in the folder that its experiments call HERE."""
    expected = _INTERRUPTED if faults else 0
    environ = {**_of_version(place), "STK_EXPERIMENT_DIR": str(place / "experiments")}
    if faults:
        environ["STK_FAULTS"] = faults
    code = subprocess.run([sys.executable, "-P", "-m", "slurm", *words], cwd=place, env=environ).returncode
    if code != expected:
        sys.exit(f"stk {' '.join(words)} ended with {code}, expected {expected}")


def _store_shipped(place: Path) -> None:
    """Store the experiments that the old version ships, named by their runs."""
    (place / SHIPPED).mkdir()
    configs = place / "old" / "configs"
    files = [*configs.glob("*.yaml"), *(configs / "spelling").glob("*.yaml")]
    command = [sys.executable, "-P", "-c", _STORE, str(place / SHIPPED), *map(str, files)]
    environ = {**_of_version(place), **_VARIABLES}
    subprocess.run(command, cwd="/", env=environ, check=True)


def _of_version(place: Path) -> dict[str, str]:
    """The environment in which Python finds the old code."""
    return {**own_environment(), "PYTHONPATH": str(place / "old")}


def _kept(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """Without the names of who made it."""
    if any(PurePath(member.name).match(each) for each in _LEFT_OUT):
        return None
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member


if __name__ == "__main__":
    made = make(sys.argv[1])
    print(f"{made}: {made.stat().st_size} bytes")
