"""Ranks on hosts: launchers, numbers of processes, uneven hosts."""
