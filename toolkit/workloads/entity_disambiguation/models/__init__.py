"""Networks that choose among candidates."""
