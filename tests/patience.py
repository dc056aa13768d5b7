"""How long tests wait for what has to come."""

#: Seconds; fewer than pytest allows a test. Nothing is measured with it: a busy machine may be slow, but a
#: hang has to end.
PATIENCE_S = 600.0
