"""What each command of `stk` may be told: a module for each, whose `add` adds it."""
