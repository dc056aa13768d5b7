"""`stk drill`: interrupt a run on purpose, and see whether it comes back as if nothing had happened.

task.py makes the experiment, local.py plays Slurm's part with processes on this machine, cluster.py
lets a real cluster do it, rows.py holds the results.
"""
