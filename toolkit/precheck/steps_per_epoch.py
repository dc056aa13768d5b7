"""The steps of one epoch, counted from the prepared data without opening the sources.

It runs on a login node and imports nothing slow.
"""

from __future__ import annotations

from toolkit.config.schema import Experiment
from toolkit.data.prepared.lookup import find_prepared_set, read_meta
from toolkit.errors import DataError


def steps_per_epoch(experiment: Experiment) -> int | None:
    """Return the steps of one epoch; None if the data are not prepared or a sample is too long."""
    try:
        return check_token_budget(experiment)
    except DataError:
        return None


def check_token_budget(experiment: Experiment) -> int | None:
    """As `steps_per_epoch`, but raise DataError if a prepared sample exceeds train.batch_max_length."""
    train, path = experiment.train, find_prepared_set(experiment.data)
    if path is None:
        return None
    if train.batch_max_length is None:
        assert train.batch_size is not None
        return -(-int(read_meta(path)["splits"]["train"]) // train.batch_size)
    # Slow to import: lengths are arrays.
    from toolkit.data.order.batches import epoch_steps

    return epoch_steps(train, experiment.data.open_prepared(path).split("train").lengths)
