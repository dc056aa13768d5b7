"""Candidates for the next word of the command line, and scripts that ask for them in bash, zsh and fish.

Not by a library: shtab writes static scripts, so runs, keys of the experiment and commands of workloads that
are installed later would need shell code in any case; argcomplete breaks `~/` in zsh.
"""
