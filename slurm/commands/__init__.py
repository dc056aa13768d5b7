"""One module for each command of `stk`: run() takes parsed arguments, prints, returns the exit code.

Each is imported only when it is called for, so that `stk plan` pays for no other.
"""
