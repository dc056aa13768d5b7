"""A report as text in a terminal, as a page, as Markdown, as CSV."""
