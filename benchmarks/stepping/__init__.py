"""One training, stepped by several tools: the same model, samples and optimizer for all."""
