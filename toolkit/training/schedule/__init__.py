"""Functions of the number of the step: actions due after it, and the learning rate. No torch."""
