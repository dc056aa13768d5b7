"""From delimited files to samples in memory maps, and the order in which training sees them. No torch."""
