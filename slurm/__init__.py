"""A submitter that has never heard of torch."""
