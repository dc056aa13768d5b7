"""The sections of an experiment whose task is functions: parameters become keys. No torch."""
