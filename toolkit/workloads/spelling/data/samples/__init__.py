"""Prepared sets of texts: noise and tokens are computed once, in parallel, and then mapped into memory."""
