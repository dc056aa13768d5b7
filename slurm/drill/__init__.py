"""`stk drill`: interrupt a run on purpose, and check that it resumes with the same bytes.

task.py makes the experiment, local.py imitates Slurm's signals with processes on this machine, cluster.py
uses a real cluster, rows.py has the results.
"""
