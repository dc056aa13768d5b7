"""Parts of models that write tokens: attention, decoders, words as blocks of one sequence."""
