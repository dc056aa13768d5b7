"""The results of benchmarks: tables, pictures, pages, goals."""
