"""Commands about this machine, the cluster, the editor and the shell."""
