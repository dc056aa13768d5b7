"""Small folders of benchmarks."""

from __future__ import annotations

from pathlib import Path

CORRUPT = ("teh cat sat", "a dgo", "fine")
CORRECT = ("the cat sat", "a dog", "fine")


def write_lines(path: Path, *lines: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def correction_benchmark(root: Path, split: str = "jfleg") -> Path:
    """Write a benchmark of corrections with one model that is right and one that changes nothing."""
    folder = root / "sec" / "neuspell" / split
    write_lines(folder / "corrupt.txt", *CORRUPT)
    write_lines(folder / "correct.txt", *CORRECT)
    write_lines(folder / "predictions" / "right.txt", *CORRECT)
    write_lines(folder / "predictions" / "idle_1.txt", *CORRUPT)
    return folder


def word_benchmark(root: Path) -> Path:
    """Write a benchmark of errors in words, with predictions in the folder of results."""
    folder = root / "sed_words" / "wiki" / "realistic"
    write_lines(folder / "corrupt.txt", *CORRUPT)
    write_lines(folder / "correct.txt", "1 0 0", "0 1", "0")
    write_lines(root / "sed_words" / "results" / "wiki" / "realistic" / "half.txt", "1 0 0", "0 0", "0")
    return folder
