"""Views of runs, actions on runs, and advice from finished runs."""
