"""The ways to what needs root on a node. Pure; used by `config.settings` and `actions.remote`."""

from enum import StrEnum


class NodeAccess(StrEnum):
    """How the bot's user gets at what only root may do or see on a node."""

    SUDO = "sudo"
    """`sudo -n /usr/local/sbin/nodewarden-helper`, the only program that sudo allows it."""
    FORCED = "forced"
    """The bot's key is bound to that program on the node (`command=` in authorized_keys), so that
    no other command runs at all."""
    PLAIN = "plain"
    """No program of ours on the nodes: the bot's user reads what any user may, and systemctl asks polkit.
    Files of users, stacks and tries of other hosts are refused."""
