"""Work on existing runs: replay a step, compare two runs, score weights again, predict, export."""
