"""Networks of the spelling study: texts as tokens, words and characters in, scores out."""
