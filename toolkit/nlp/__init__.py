"""Code that several text workloads share: tokenizers, encoders, decoding."""
