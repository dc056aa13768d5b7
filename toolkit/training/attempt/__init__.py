"""One attempt of a run on one rank: its stages, time limits, failure records, and the end of the run."""
