"""What is wrong with a job, as far as that is known before it is queued."""
