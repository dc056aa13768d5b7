"""The optimizer and the learning rate where functions of the user's make them."""
