"""The cluster behaves like a cluster: what the other tests build on."""

import pytest

from .cluster import Cluster
from .errors import ClusterError, CommandFailed


def test_cluster_of_a_running_process_cannot_be_taken_over(cluster: Cluster) -> None:
    second = Cluster(cluster.name)
    with pytest.raises(ClusterError, match="belongs to a running process"):
        second.up()
    assert second.is_up()
    third = Cluster.with_free_name(cluster.name)
    assert third.name != cluster.name
    third.down()


def test_error_of_a_failing_command_shows_its_output(cluster: Cluster) -> None:
    with pytest.raises(CommandFailed, match="Invalid job id"):
        cluster.job(10_000_000)


@pytest.mark.parametrize("name", ["", "Tests", "a-b", "../x", "elevenchars"])
def test_invalid_cluster_name_is_refused(name: str) -> None:
    with pytest.raises(ClusterError, match="expected a small letter"):
        Cluster(name)
