"""Data: prepared sets in memory maps, and the order in which training reads them. No torch."""
