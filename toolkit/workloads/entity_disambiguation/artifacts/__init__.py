"""The files of a finished run of entity disambiguation."""
