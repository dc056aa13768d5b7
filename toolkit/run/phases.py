"""Phases of an attempt: what a rank is doing, as heartbeats, failure records and injected faults name it."""

from __future__ import annotations

from enum import StrEnum


class Phase(StrEnum):
    """The current activity of a rank; the values are written to the files of a run."""

    IMPORT = "import"
    START = "start"
    RENDEZVOUS = "rendezvous"
    DATA_PREPARATION = "data preparation"
    MODEL = "model"
    LOAD = "load"
    DATA = "data"
    FORWARD = "forward"
    BACKWARD = "backward"
    COMMUNICATION = "communication"
    OPTIMIZER = "optimizer"
    EVALUATION = "evaluation"
    SAVE = "save"
    REPORT = "report"
    PROGRAM = "program"


#: Phases at which a fault can be injected (toolkit.reliability.fault_injection), in the order of a step.
TRAINING_PHASES = (
    Phase.DATA,
    Phase.FORWARD,
    Phase.BACKWARD,
    Phase.COMMUNICATION,
    Phase.OPTIMIZER,
    Phase.EVALUATION,
    Phase.SAVE,
)
