"""Starting the ranks of a run on this machine, or on several."""
