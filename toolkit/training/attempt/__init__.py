"""One attempt of a run on one rank: its stages, its time limits, what a failure records, how a run ends."""
