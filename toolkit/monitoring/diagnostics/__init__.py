"""What a machine, its GPUs, its torch and its file systems can do, each found out in a child process."""
