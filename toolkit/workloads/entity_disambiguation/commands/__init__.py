"""`stk entities`, and the option of `stk evaluate` that names the database of entities."""
