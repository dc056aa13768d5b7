"""Several machines joined by hand: who they are, how their launchers meet, and how they act as one."""
