"""What the commands say and do on the cluster."""
