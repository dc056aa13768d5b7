"""Candidates for the next word of the command line.

No library is used: shtab writes static scripts, so runs, keys of the experiment and commands of workloads
that are installed later would still need shell code; argcomplete breaks `~/` in zsh.
"""
