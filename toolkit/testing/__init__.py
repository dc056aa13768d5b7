"""Checks of a task, for our tests and those of authors of workloads."""

from toolkit.testing.contract import check_task

__all__ = ["check_task"]
