"""What this cluster and this machine can do, and what follows for a job."""
