"""The workloads that come with the toolkit. Each is a package that plugs in, as a user's own would."""
