"""A house whose experiment is one of text classification."""

from __future__ import annotations

import pytest

from tests.slurm.house import CONFIG, House


@pytest.fixture(autouse=True)
def classifier(house: House) -> None:
    config = CONFIG.replace("toy_texts", "text_classification").replace("convolutions", "docnn")
    house.config.write_text(config)
