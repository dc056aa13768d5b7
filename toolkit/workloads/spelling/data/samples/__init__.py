"""Prepared sets of texts: noise and tokens are computed once, in parallel, then mapped into memory."""
