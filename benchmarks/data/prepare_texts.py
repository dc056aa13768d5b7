"""The gain of several processes over one in making samples of texts.

    python -m benchmarks.data.prepare_texts TEXTS TOKENIZER [--misspellings FILE] [--dictionary FILE]
                                            [--workers 2]

TEXTS (clean texts, one a line) are repeated until there are --texts of them, and prepared into an empty
folder with one process and with --workers, in turn, --rounds times; with mixed noise if --misspellings is
given, else with artificial noise. The time includes hashing, the shards, and joining them in one process. The
output is texts a second and seconds of CPU for each round, and the ratio of the medians. The ratio means
something only on an idle machine: beside other work the processes do not get their CPUs. The seconds of CPU
then still show the overhead of several processes.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from dataclasses import replace
from itertools import cycle, islice
from pathlib import Path
from statistics import median

from toolkit.workloads.spelling.config.data import SpellingTexts
from toolkit.workloads.spelling.config.noise import ArtificialNoise, MixedNoise
from toolkit.workloads.spelling.data.samples.prepared import prepare


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("texts_file", type=Path, metavar="TEXTS")
    parser.add_argument("tokenizer", type=Path, metavar="TOKENIZER")
    parser.add_argument("--misspellings", metavar="FILE")
    parser.add_argument("--dictionary", metavar="FILE")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--texts", type=int, default=40_000)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        data = _section(Path(name), arguments)
        speeds: dict[int, list[float]] = {1: [], arguments.workers: []}
        for number in range(arguments.rounds):
            for workers, found in speeds.items():
                folder = Path(name) / f"{number}-{workers}"
                before = _cpu_s()
                found.append(
                    _speed(replace(data, workers=workers, prepared_dir=str(folder)), arguments.texts)
                )
                cpu_s, load = _cpu_s() - before, os.getloadavg()[0]
                print(
                    f"{workers} processes: {found[-1]:,.0f} texts/s, {cpu_s:.1f} s of CPU (load {load:.1f})"
                )
    one, several = (median(found) for found in speeds.values())
    print(
        f"{arguments.workers} processes are {several / one:.2f} times as fast as one: {os.cpu_count()} CPUs"
    )


def _section(folder: Path, arguments: argparse.Namespace) -> SpellingTexts:
    lines = arguments.texts_file.read_text(encoding="utf-8").splitlines()
    path = folder / "texts.txt"
    path.write_text("\n".join(islice(cycle(lines), arguments.texts)) + "\n", encoding="utf-8")
    misspellings = arguments.misspellings
    noise = MixedNoise(misspellings=misspellings) if misspellings else ArtificialNoise()
    return SpellingTexts(
        datasets=(str(path),),
        noise=noise,
        tokenizer_path=str(arguments.tokenizer),
        dictionary=arguments.dictionary,
    )


def _speed(data: SpellingTexts, texts: int) -> float:
    start = time.perf_counter()
    prepare(data)
    return texts / (time.perf_counter() - start)


def _cpu_s() -> float:
    """Return the CPU time of this process and of its children that have ended."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


if __name__ == "__main__":
    main()
