"""From delimited files to samples in memory maps. No torch."""
