"""A real Slurm with virtual nodes on one machine, for `nodewarden sandbox --slurm` and the tests.

One kernel plays a cluster. Each virtual node is a set of network, PID, mount and UTS namespaces
with its own address, host name, boot id, gres.conf, kernel log, slurmd and sshd; `supervisor.py` is
its process 1. A main set around them holds munged, MariaDB, slurmdbd and slurmctld
(SlurmUser=slurm), so one SIGKILL ends the testbed, even from another process after a crash, and all
its mounts and networks end with it. `network.py` says how the machines are connected.
It ends with the program that started it, where that did so in its main thread.

What a test can do to it: `node_faults` (daemons, keys, power), `link_faults` (cables, the bot's
uplink), `resource_faults` (process numbers, a frozen disk), `cluster_faults` (controllers, an admin
at work), `training` (coupled jobs, a full queue, two writers), `redfish` (BMCs). `options` says what
it can be.

Who is who: slurmctld runs as `slurm`, slurmd as root, the bot as an ordinary user with
AdminLevel=Admin, jobs as another ordinary user, foreign drains by a third.

On a node the bot is not root. What needs root goes through sudo and `nodewarden-helper`, installed
on each node as an admin would (`root_access.py`). The `systemctl` in the node's PATH asks process 1
of the node, which lets nobody but root change a unit.

It must never touch the system's /etc (it adds its OS users, nothing else), listen outside of its
own namespaces, change a route or an interface that it did not make, or end a process that it did
not start.
"""

from bot.testbed.options import TestbedError, TestbedOptions
from bot.testbed.testbed import SlurmTestbed

__all__ = ["SlurmTestbed", "TestbedError", "TestbedOptions"]
