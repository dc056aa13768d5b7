"""The user's files: where they are, and which of them a run keeps."""
