"""The workloads that come with the toolkit. Each is a plug-in package, like a workload of a user."""
