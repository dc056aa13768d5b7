"""What the tests of workloads share with those of the core."""

from tests.slurm.conftest import user as user
from tests.toolkit.report.conftest import finished_run as finished_run
from tests.toolkit.report.conftest import new_run as new_run
