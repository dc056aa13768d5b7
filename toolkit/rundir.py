"""RunDir: every file name of a run. Nobody else builds a path inside a run folder."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from glob import escape
from pathlib import Path

from toolkit.errors import RunNotFound, UserError

#: Files of a checkpoint; the manifest is written last.
MANIFEST = "MANIFEST.json"
WEIGHTS, TRAINING, PROGRESS = "model.safetensors", "training.safetensors", "progress.json"

#: Where runs go that start anew, beside the runs.
_OLD = "old"

_STEP = re.compile(r"step_(\d{8})")
_RANK_LOG = re.compile(r"(.+)\.rank_(\d+)\.log")


def _listed(folder: Path) -> list[Path]:
    """What is in a folder; nothing where it does not exist."""
    try:
        return [folder / name for name in os.listdir(folder)]
    except FileNotFoundError:
        return []


@dataclass(frozen=True, slots=True)
class RunDir:
    """A run's folder: self-contained and readable without this project.

    Properties name files; none of them creates anything.
    """

    path: Path

    @property
    def run_id(self) -> str:
        return self.path.name

    # -- what was asked for ------------------------------------------------------------------
    @property
    def config(self) -> Path:
        """The resolved experiment, YAML."""
        return self.path / "config.yaml"

    @property
    def job(self) -> Path:
        """Resources as submitted, YAML."""
        return self.path / "job.yaml"

    @property
    def code(self) -> Path:
        """The code that the run was submitted with."""
        return self.path / "code"

    def has_code(self, module: str) -> bool:
        """Whether that code has a module, such as toolkit.worker."""
        return self.code.joinpath(*module.split(".")).with_suffix(".py").is_file()

    @property
    def submissions(self) -> Path:
        """One line per submission."""
        return self.path / "submissions.jsonl"

    @property
    def intent(self) -> Path:
        """Exists from just before sbatch until its answer is recorded."""
        return self.path / "intent.json"

    @property
    def submitit(self) -> Path:
        """submitit's own files: the pickle, which holds a path, and the script."""
        return self.path / "submitit"

    @property
    def lock(self) -> Path:
        """Held by whoever submits; rank 0 of a live run holds `alive`."""
        return self.path / ".submit.lock"

    @property
    def alive(self) -> Path:
        """Locked by rank 0 while it trains: the kernel lets go of it however rank 0 ends."""
        return self.path / ".alive.lock"

    # -- what happened -----------------------------------------------------------------------
    @property
    def attempts(self) -> Path:
        """One line per start."""
        return self.path / "attempts.jsonl"

    @property
    def events(self) -> Path:
        """Saves, signals, requeues, failures, with times."""
        return self.path / "events.jsonl"

    @property
    def metrics(self) -> Path:
        """One JSON object per line: step, epoch, split, loss, …"""
        return self.path / "metrics.jsonl"

    @property
    def receipts(self) -> Path:
        """One line per step: which samples it read, its loss, and the chain of all steps so far."""
        return self.path / "receipts.jsonl"

    @property
    def quarantine(self) -> Path:
        """Samples that are left out because they failed, and why; JSON."""
        return self.path / "quarantine.json"

    @property
    def fence(self) -> Path:
        """Names the newest start: a process of an earlier one that finds it leaves at once."""
        return self.path / "fence.json"

    @property
    def failure(self) -> Path:
        """The first failing rank's error."""
        return self.path / "failure.json"

    @property
    def result(self) -> Path:
        """Written last: its existence means finished."""
        return self.path / "result.json"

    @property
    def progress(self) -> Path:
        """Where the live run stands, rewritten every few seconds: for views only."""
        return self.path / "progress.json"

    def ranks(self, nonce: str) -> Path:
        """Who the ranks of one start were: host, pid, device, rendezvous; JSON lines."""
        return self.path / "ranks" / f"{nonce}.jsonl"

    def rendezvous(self, nonce: str) -> Path:
        """Where rank 0 of one start publishes its store."""
        return self.path / "ranks" / f"{nonce}.store.json"

    def heartbeat(self, nonce: str, rank: int) -> Path:
        """What one rank of one start is doing, rewritten every few seconds; JSON."""
        return self.path / "ranks" / f"{nonce}.rank_{rank:05d}.json"

    def usage(self, nonce: str, rank: int) -> Path:
        """What one rank of one start takes of its machine, rewritten every few seconds; JSON."""
        return self.path / "ranks" / f"{nonce}.usage_{rank:05d}.json"

    def usages(self, nonce: str) -> list[Path]:
        """The files of all ranks of one start that say what they take."""
        return sorted((self.path / "ranks").glob(f"{escape(nonce)}.usage_*.json"))

    # -- logs --------------------------------------------------------------------------------
    @property
    def logs(self) -> Path:
        return self.path / "logs"

    def log(self, nonce: str, rank: int) -> Path:
        """The log of one rank in one start."""
        return self.logs / f"{nonce}.rank_{rank:05d}.log"

    def rank_logs(self) -> Iterator[tuple[str, int, Path]]:
        """Start, rank and file of every rank's log that is there, in no order."""
        for path in _listed(self.logs):
            if match := _RANK_LOG.fullmatch(path.name):
                yield match[1], int(match[2]), path

    def launcher_log(self, name: str) -> Path:
        """What the launcher of one submission to this machine said."""
        return self.logs / f"{name}.launcher.log"

    def job_log(self, job: str) -> Path:
        """What the batch script of one job said, in all its starts."""
        return self.logs / f"{job}.batch.log"

    def job_logs(self) -> list[Path]:
        """What the run's batch scripts and launchers said; the one that spoke last is last."""
        found = (path for path in _listed(self.logs) if path.name.endswith((".batch.log", ".launcher.log")))
        return sorted(found, key=lambda path: (path.stat().st_mtime, path.name))

    # -- checkpoints -------------------------------------------------------------------------
    @property
    def checkpoints(self) -> Path:
        return self.path / "checkpoints"

    def checkpoint(self, step: int) -> Path:
        """The checkpoint after so many steps: complete or absent."""
        return self.checkpoints / f"step_{step:08d}"

    @property
    def best(self) -> Path:
        """Link to the best checkpoint."""
        return self.checkpoints / "best"

    @property
    def last(self) -> Path:
        """Link to the newest checkpoint, for people; loading scans instead."""
        return self.checkpoints / "last"

    def checkpoint_steps(self) -> list[int]:
        """Steps of the checkpoints that are there, oldest first. Says nothing of their health."""
        if not self.checkpoints.is_dir():
            return []
        found = (_STEP.fullmatch(entry.name) for entry in self.checkpoints.iterdir())
        return sorted(int(match[1]) for match in found if match)

    def checkpoint_leftovers(self) -> list[Path]:
        """Hidden folders beside the checkpoints: half written, half deleted, or put aside as damaged."""
        return sorted(self.checkpoints.glob(".step_*")) if self.checkpoints.is_dir() else []

    # -- results -----------------------------------------------------------------------------
    @property
    def tensorboard(self) -> Path:
        return self.path / "tensorboard"

    @property
    def artifacts(self) -> Path:
        """Predictions, scores and exports."""
        return self.path / "artifacts"

    # Files of a split are called by its name: `test`, or `test_text` for whole texts that were folded.

    def classes(self, name: str) -> Path:
        """Confusion matrix and scores per class of one split, JSON."""
        return self.artifacts / f"{name}_classes.json"

    def curves(self, name: str) -> Path:
        """ROC and precision over recall of one split, where there are two classes; JSON."""
        return self.artifacts / f"{name}_curves.json"

    def predictions(self, name: str) -> Path:
        """One line per sample of one split, TSV."""
        return self.artifacts / f"{name}_predictions.tsv"

    # Of entity disambiguation.

    def slices(self, split: str) -> Path:
        """Counts of each slice of one split, JSON."""
        return self.artifacts / f"{split}_slices.json"

    def disambig_metrics(self, split: str) -> Path:
        """Accuracy and popularity of each slice of one split, CSV in the original's columns."""
        return self.artifacts / f"{split}_disambig_metrics.csv"

    def dump(self, split: str) -> Path:
        """Every input line of one split with the predictions beside it, JSON lines."""
        return self.artifacts / f"{split}_predictions.jsonl"

    # Of spelling.

    @property
    def encoding(self) -> Path:
        """Tokenizers and dictionary that encode texts as the model knows them: a folder."""
        return self.artifacts / "encoding"

    def benchmark_predictions(self, kind: str, group: str, split: str) -> Path:
        """What the best weights say of a benchmark, a line for each of its texts."""
        return self.artifacts / "benchmarks" / kind / group / f"{split}.txt"

    # Of the detection of spelling errors.

    def detections(self, split: str) -> Path:
        """0 or 1 for every word of one split, or for every text; a line for each text, in input order."""
        return self.artifacts / f"{split}_predictions.txt"

    def detection_counts(self, split: str) -> Path:
        """What was found of the errors of one split, JSON."""
        return self.artifacts / f"{split}_detection.json"

    # Of the repair of white space.

    def repairs(self, split: str) -> Path:
        """The texts of one split with their white space repaired; a line for each text, in input order."""
        return self.artifacts / f"{split}_repairs.txt"

    def repair_counts(self, split: str) -> Path:
        """Which spaces were inserted and deleted in the texts of one split, JSON."""
        return self.artifacts / f"{split}_repair.json"

    # Of their correction.

    def corrections(self, split: str) -> Path:
        """What the texts of one split should say; a line for each text, in input order."""
        return self.artifacts / f"{split}_corrections.txt"

    def correction_counts(self, split: str) -> Path:
        """What was restored and spoilt in the texts of one split, JSON."""
        return self.artifacts / f"{split}_correction.json"

    @property
    def labels(self) -> Path:
        """How many samples of each label are in each split, JSON."""
        return self.artifacts / "labels.json"

    # `root` is the name of the data file without its suffix.

    def testset_predictions(self, root: str, *, whole_texts: bool = False) -> Path:
        """Predictions of the test set, CSV; of whole texts where they were folded."""
        return self.artifacts / f"{root}_testset_{'text_' if whole_texts else ''}predictions.csv"

    def train_test_stats(self, root: str) -> Path:
        """Loss and accuracy by epoch, and the scores of the test set; JSON."""
        return self.artifacts / f"{root}_train_test_stats.json"

    def trained_model(self, root: str) -> Path:
        """The best weights as a state dict of torch."""
        return self.artifacts / f"{root}_trained_model.sav"

    @property
    def exported_model(self) -> Path:
        """The best weights of a pretrained model, as the folder that its library loads."""
        return self.artifacts / "model"

    # -- scored again ------------------------------------------------------------------------
    def evaluation(self, name: str) -> RunDir:
        """The best weights scored again: a folder like a run's, with config, scores, artifacts, report."""
        return RunDir(self.path / "evaluations" / name)

    @property
    def scores(self) -> Path:
        """In an evaluation's folder: its scores, and what they are of; written last, JSON."""
        return self.path / "metrics.json"

    # -- report ------------------------------------------------------------------------------
    @property
    def report(self) -> Path:
        return self.path / "report"

    @property
    def report_html(self) -> Path:
        return self.report / "report.html"

    @property
    def report_json(self) -> Path:
        """The numbers of the report."""
        return self.report / "report.json"

    @property
    def report_markdown(self) -> Path:
        """The report's tables, for an issue or a README."""
        return self.report / "report.md"

    @property
    def metrics_csv(self) -> Path:
        """The curves, for a spreadsheet."""
        return self.report / "metrics.csv"


def set_aside(run: RunDir) -> Path:
    """Move a run's folder into `old/` beside it, so that it can start anew; return its new place."""
    stamp = datetime.now().strftime("%Y%m%d-%H%M%S-%f")
    target = run.path.parent / _OLD / f"{run.run_id}.{stamp}"
    target.parent.mkdir(exist_ok=True)
    run.path.rename(target)
    return target


def set_aside_runs(experiment_dir: Path) -> list[RunDir]:
    """Folders of runs that were put aside, by name."""
    folder = experiment_dir / _OLD
    return [RunDir(entry) for entry in sorted(folder.iterdir()) if entry.is_dir()] if folder.is_dir() else []


def experiment_dir() -> Path:
    """Where runs are kept: STK_EXPERIMENT_DIR, or `experiments` in the working directory."""
    return Path(os.environ.get("STK_EXPERIMENT_DIR") or "experiments").resolve()


def find_runs(experiment_dir: Path) -> Iterator[RunDir]:
    """Every run folder directly under the experiment folder, by name. Raises UserError."""
    try:
        # Plain strings: of ten thousand runs, paths would take half a second.
        names = sorted(os.listdir(experiment_dir))
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        raise UserError(f"the runs under {experiment_dir} cannot be read: {error.strerror}") from None
    config = RunDir(Path()).config.name
    for name in names:
        if os.path.isfile(f"{experiment_dir}/{name}/{config}"):
            yield RunDir(experiment_dir / name)


def find_run(name: str, experiment_dir: Path) -> RunDir:
    """The run that a folder, a file in it, an id, or a unique prefix of an id names.

    Raises RunNotFound, which lists the candidates.
    """
    given = Path(name)
    # Any file of a run names it, too: its predictions, say.
    for folder in (given, *given.resolve().parents) if given.is_file() else (given,):
        if (folder / "config.yaml").is_file():
            return RunDir(folder.resolve())
    runs = list(find_runs(experiment_dir))
    exact = [run for run in runs if run.run_id == name]
    matches = exact or [run for run in runs if run.run_id.startswith(name)]
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise RunNotFound(f"{name!r} names {len(matches)} runs: {', '.join(run.run_id for run in matches)}")
    known = ", ".join(run.run_id for run in runs[:10]) or "none"
    raise RunNotFound(f"no run {name!r} under {experiment_dir}; runs there: {known}")
