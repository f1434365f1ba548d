"""The section `spares` of a cluster: what may stand in for a lost node. Pure."""

from typing import Annotated

from pydantic import Field

from config.fields import Nodes, Section, Truth


class Spares(Section):
    """Nodes that are kept to stand in for others."""

    nodes: Nodes
    """The spares. Where no idle node of the lost one's partitions fits, one of them is taken: first from a
    reservation of the bot, then out of a drain of the bot, last from another partition."""
    features: tuple[Annotated[str, Field(min_length=1, max_length=64)], ...] = ()
    """Beginnings of the features that must be the same on both, such as `image=` and `rack=`. Default:
    none, and a spare must have each feature of the lost node."""
    partition_edit: Truth = False
    """Whether the bot may write a spare into the partition of the lost node when nothing else is left. The
    edit is gone after a reconfigure or a start of slurmctld, so slurm.conf must follow. Default: false."""
