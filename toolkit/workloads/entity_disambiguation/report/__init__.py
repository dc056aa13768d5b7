"""Report sections of entity disambiguation."""
