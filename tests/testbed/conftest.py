"""Makes the session's testbed known to the tests of this folder."""

from tests.testbed.fixture import slurm_testbed

__all__ = ["slurm_testbed"]
