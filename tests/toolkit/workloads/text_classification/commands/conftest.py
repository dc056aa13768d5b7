"""A user whose experiment is one of text classification."""

from __future__ import annotations

import pytest

from tests.slurm.support.user import CONFIG, User


@pytest.fixture(autouse=True)
def classifier(user: User) -> None:
    config = CONFIG.replace("toy_texts", "text_classification").replace("convolutions", "docnn")
    user.config.write_text(config)
