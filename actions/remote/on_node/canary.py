"""A canary job: the site's own script, run by Slurm as the site's unprivileged account.

Used on the bot's own host, where the bot may not submit as another user. Node, reservation and name
of the job are all that the bot may choose; only jobs of that account are shown and ended.
"""

from __future__ import annotations

from collections.abc import Callable

from actions.remote.on_node import processes
from actions.remote.on_node.answers import Answer, plain
from actions.remote.on_node.files import account
from actions.remote.on_node.site import Site
from actions.remote.on_node.words import Failed, Refused

_LIMIT = 20.0
_FORM = "State:24,UserID:16,exit_code:16,NodeList:128"
"""No text that a user wrote is among these."""


def start(node: str, reservation: str, effect: str, site: Site) -> Callable[[int], processes.Ended]:
    """`sbatch` into that reservation, on exactly that node."""
    _account(site)
    argv = ["sbatch", "--parsable", "--no-requeue", f"--job-name={effect}", "--nodes=1"]
    argv += [f"--reservation={reservation}", f"--nodelist={node}", "--chdir=/", "--export=NIL"]
    argv += ["--output=/dev/null", "--", site.canary_script]
    return lambda lock: _as_account(argv, site, lock)


def end(job: int, site: Site) -> Callable[[int], processes.Ended]:
    """`scancel`, as the account, so that no other's job can be meant."""
    name, _, _ = _account(site)
    return lambda lock: _as_account(["scancel", f"--user={name}", "--", str(job)], site, lock)


def state(job: int, site: Site) -> Answer:
    """State and exit code of a job of the account. Raises Failed where it is another's."""
    name, uid, _ = _account(site)
    argv = ["squeue", "--noheader", "--all", "--local", "--states=all", f"--jobs={job}"]
    ended = processes.run([*argv, f"--Format={_FORM}"], site.environment(), _LIMIT)
    facts = ended.text().split()
    if not ended.ok or len(facts) < 3:
        raise Failed(f"squeue shows no job {job}: {ended.said()}")
    if facts[1] != str(uid):
        raise Refused(f"job {job} is none of {name}")
    return plain({"job": job, "state": facts[0], "exit_code": facts[2], "nodes": facts[3:]})


def _account(site: Site) -> tuple[str, int, int]:
    if not site.canary_user or not site.canary_script:
        raise Refused("no canary_user and canary_script in /etc/nodewarden/helper.conf")
    return account(site.canary_user, site.lowest_user)


def _as_account(argv: list[str], site: Site, lock: int) -> processes.Ended:
    name, uid, gid = _account(site)
    words = ["setpriv", f"--reuid={uid}", f"--regid={gid}", "--init-groups", "--no-new-privs", "--"]
    environment = {**site.environment(), "HOME": "/", "USER": name, "LOGNAME": name}
    return processes.run([*words, *argv], environment, _LIMIT, keep=(lock,))
