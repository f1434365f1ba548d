"""Whether the bot itself reaches anything: without that, the silence of a node means nothing."""

import socket
from collections.abc import Iterable

PATIENCE = 2.0
"""Seconds for one host; they are local to the cluster."""


def reaches_any(hosts: Iterable[str]) -> bool:
    """Whether one of these (`host:port`) answers a TCP connection; true where a site named none (hands 2)."""
    named = False
    for host in hosts:
        named = True
        if _answers(host):
            return True
    return not named


def reached(hosts: Iterable[str]) -> int:
    """How many of these answer."""
    return sum(1 for host in hosts if _answers(host))


def _answers(host: str) -> bool:
    try:
        name, _, port = host.rpartition(":")
        with socket.create_connection((name.strip("[]"), int(port)), PATIENCE):
            return True
    except OSError:
        return False
