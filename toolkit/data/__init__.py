"""Data of every kind: prepared sets in memory maps, and the order in which training sees them. No torch."""
