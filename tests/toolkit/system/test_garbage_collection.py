"""Work without garbage collection."""

from __future__ import annotations

import gc
from contextlib import suppress

from toolkit.system.garbage_collection import without_collection


def test_collection_is_enabled_again_after_an_error() -> None:
    with suppress(ValueError), without_collection():
        assert not gc.isenabled()
        raise ValueError
    assert gc.isenabled()


def test_disabled_collection_stays_disabled() -> None:
    gc.disable()
    try:
        with without_collection():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
