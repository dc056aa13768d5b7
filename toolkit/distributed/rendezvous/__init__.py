"""Rendezvous: rank 0 opens a store, and the others find it, in one of three ways.

By publication: on a free port, which rank 0 writes into the run folder. No port is chosen beforehand, so two
jobs on one host cannot collide; the file is named after this attempt, so a stale one is never joined.
By the environment: at MASTER_ADDR and MASTER_PORT, if the user chooses that; under torchrun, at a free port
beside torchrun's own store, which anyone can read and write. By a file: the store is a file in a folder of
the run that only its owner may enter.
Every rank and rank 0 prove the secret of this attempt to each other before the rank joins
(toolkit.distributed.secure), so that other programs are refused; a network fault is named within seconds.
"""

from __future__ import annotations

from toolkit.distributed.rendezvous.find_rank_0 import meet
from toolkit.distributed.rendezvous.result import Rendezvous

__all__ = ["Rendezvous", "meet"]
