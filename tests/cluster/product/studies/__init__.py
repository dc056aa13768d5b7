"""Studies, benchmarks, and runs of earlier versions."""
