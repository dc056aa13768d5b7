"""The attempts of a run: how each began and ended, and whether another one follows."""
