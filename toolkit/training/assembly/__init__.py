"""Building what a rank trains with: model, optimizer, reduction over the ranks, and their context."""
