"""What a text, a word and a spelling error are: words, noise, dictionaries, misspellings, benchmarks."""
