"""What could stand next on the command line, and the scripts that ask for it in bash, zsh and fish.

Not by a library: shtab writes static scripts, so runs, keys of the experiment and commands of workloads that
are installed later would need shell code in any case; argcomplete breaks `~/` in zsh.
"""
