"""The step time of several tools, with the same model, samples and optimizer."""
