"""Three functions of the user's as a task: a model, data, and a step."""
