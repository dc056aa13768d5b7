"""`stk entities`, and `stk evaluate` with another database of entities."""
