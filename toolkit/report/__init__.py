"""Run folder -> numbers -> blocks -> terminal, page, Markdown, CSV. Writes below a run's report/ only."""
