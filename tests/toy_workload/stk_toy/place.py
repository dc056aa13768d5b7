"""Says which file is executed: python -P -m stk_toy.place RUN_DIR REQUEST."""

print(__file__)
