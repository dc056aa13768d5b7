"""Starting from the weights of another run: finding the file, comparing names and shapes, loading."""
