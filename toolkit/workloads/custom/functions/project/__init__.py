"""The user's files: where they are, which of them a run keeps, those of a new project."""
