"""The preparation of data, here or as a separate job."""
