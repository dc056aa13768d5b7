"""Code that the callbacks of trainers share."""

from __future__ import annotations

from toolkit.errors import UserError

_begun: list[str] = []


def begin_once(what: str) -> None:
    """Say that a training begins whose checkpoints the run keeps. Raises UserError at the second one.

    what  the call, such as trainer.fit
    """
    if _begun:
        raise UserError(
            f"{what} begins a second training in one script, which would continue from the checkpoints of "
            "the first: give RunCallback to one of them, or use a script for each"
        )
    _begun.append(what)
