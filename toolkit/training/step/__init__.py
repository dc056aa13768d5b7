"""One step of training: the forward and backward passes of this rank, the sum over the ranks, one update."""
