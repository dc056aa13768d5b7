"""Work on runs that exist: replay a step, compare two runs, score the weights again."""
