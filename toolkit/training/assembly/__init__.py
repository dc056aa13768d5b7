"""Building the training objects of a rank: model, optimizer, reduction over the ranks, and their context."""
