"""What several text workloads share: tokenizers, encoders, decoding."""
