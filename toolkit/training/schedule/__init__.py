"""What depends only on the number of the step: what is due after it, and the learning rate. No torch."""
