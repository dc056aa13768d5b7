"""Three functions of the user as a task: `model`, `data` and `step`."""
