"""The product on the real cluster: from an experiment file to a trained model, as its users do it."""
