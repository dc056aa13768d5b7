"""Checks of a task, for our tests and for those of people who write workloads."""

from toolkit.testing.contract import check_task

__all__ = ["check_task"]
