"""Networks of the spelling study. They map tokens, words and characters of texts to scores."""
