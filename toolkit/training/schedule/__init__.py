"""Functions of the step number: actions due after the step, and its learning rate. No torch."""
