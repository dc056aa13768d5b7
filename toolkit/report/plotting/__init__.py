"""How plots are drawn: figures in the colours of a theme, curves over steps."""
