"""Whether another host of the cluster answers on TCP: the second vantage point of "the host is dead".

Connects and closes, sends nothing. Only hosts of the configuration, so that the program is no scanner.
"""

from __future__ import annotations

import errno
import fnmatch
import ipaddress
import os
import socket

from actions.remote.on_node.answers import Answer, plain
from actions.remote.on_node.site import Site
from actions.remote.on_node.words import Refused

_PATIENCE = 3.0
MOST_PORTS = 4
_REFUSALS = {errno.ECONNREFUSED, errno.ECONNRESET}


def tried(host: str, ports: list[int], site: Site) -> Answer:
    """For each port: open, refused, silent or no_route."""
    if not _allowed(host, site.hosts):
        listed = " ".join(site.hosts) or "there are none"
        raise Refused(f"host {host} is not of those in /etc/nodewarden/helper.conf ({listed})")
    return plain({"host": host, "tried": [_one(host, port) for port in ports]})


def _one(host: str, port: int) -> dict[str, object]:
    try:
        socket.create_connection((host, port), _PATIENCE).close()
    except socket.timeout:  # noqa: UP041  a class of its own before Python 3.10
        return _answer(port, "silent", f"no answer within {_PATIENCE:g} s")
    except OSError as error:
        answer = "refused" if error.errno in _REFUSALS else "no_route"
        if error.errno == errno.ETIMEDOUT:
            answer = "silent"
        return _answer(port, answer, error.strerror or os.strerror(error.errno or 0))
    return _answer(port, "open", "the connection was accepted")


def _answer(port: int, answer: str, evidence: str) -> dict[str, object]:
    return {"port": port, "answer": answer, "evidence": f"port {port}: {evidence}"[:200]}


def _allowed(host: str, hosts: tuple[str, ...]) -> bool:
    if any("/" not in one and fnmatch.fnmatchcase(host, one) for one in hosts):
        return True
    try:
        address = ipaddress.ip_address(host)
        return any(address in ipaddress.ip_network(one) for one in hosts if "/" in one)
    except ValueError:
        return False
