"""The commands of `stk`, in packages by subject.

Each command has a module: run() takes parsed arguments, prints, and returns the exit code. `arguments` of a
package has a function for each command, which adds it to the parser. A command is imported only when it is
called, and what is slow to import or seldom needed in the function that needs it, so no command waits for the
imports of others.
"""
