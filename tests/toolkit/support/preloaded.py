"""What ranks import and look up, done once in the process that they are forked from."""

from __future__ import annotations

import gc

from toolkit.config.sections import experiment_type
from toolkit.registry import unloaded

experiment_type()
assert not unloaded(), unloaded()
# A collection in a rank would else touch, and so copy, all that is imported here.
gc.freeze()
