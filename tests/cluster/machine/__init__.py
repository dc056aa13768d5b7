"""What a cluster takes from its machine: a claim, folders, a network, daemons and Debian packages."""
