"""`toolkit.config` imports its names lazily, and has every name in __all__."""

from __future__ import annotations

import pytest

import toolkit.config


def test_every_lazy_name_exists_and_unknown_names_raise() -> None:
    assert all(getattr(toolkit.config, name) is not None for name in toolkit.config.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = toolkit.config.nothing
