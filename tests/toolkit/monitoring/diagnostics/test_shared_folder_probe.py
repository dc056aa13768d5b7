"""Two processes probe one shared folder: files, answers and locks."""

from __future__ import annotations

import threading
from pathlib import Path

from toolkit.monitoring.diagnostics import shared_folder_probe
from toolkit.monitoring.diagnostics.shared_folder_probe import answer, ask


def test_each_side_sees_the_other_and_its_lock(tmp_path: Path) -> None:
    over = threading.Event()
    other = threading.Thread(target=answer, args=(tmp_path, over), daemon=True)
    other.start()
    facts = ask(tmp_path, 60)
    assert facts["lock_holds"] is True
    assert facts["there_and_back_s"] >= 0
    assert abs(facts["clock_ahead_s"]) <= facts["there_and_back_s"]
    over.set()
    other.join(60)
    assert not other.is_alive()


def test_the_clock_difference_is_computed_from_the_round_trip() -> None:
    clock = shared_folder_probe._clock({"seen": 105.0, "sent": 106.0}, 100.0, 101.5, 1.5)
    assert clock == {"there_and_back_s": 1.5, "clock_ahead_s": 4.75}


def test_no_answer_gives_no_lock_and_no_round_trip(tmp_path: Path) -> None:
    facts = ask(tmp_path, 0.05)
    assert (facts["sees_folder"], facts["lock_holds"], facts["there_and_back_s"]) == (True, None, None)


def test_a_missing_folder_is_reported(tmp_path: Path) -> None:
    assert ask(tmp_path / "elsewhere", 0)["sees_folder"] is False
