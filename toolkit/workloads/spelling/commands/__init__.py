"""`stk detect`, `stk correct` and `stk spelling`, and `stk evaluate` on benchmarks."""
