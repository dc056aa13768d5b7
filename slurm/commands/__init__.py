"""The commands of `stk`, in packages by what they are about.

A module for each command: run() takes parsed arguments, prints, and returns the exit code. `arguments` of a
package has a function for each command, which adds it to the parser. A command is imported only when it is
called, so that `stk plan` pays for no other.
"""
