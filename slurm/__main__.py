"""`python -m slurm` is `stk`."""

import sys

from slurm.cli import main

sys.exit(main())
