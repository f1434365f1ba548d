"""Whether a testbed can run on this machine. Called before anything is started."""

import os
import pwd
import shutil
import subprocess
from functools import lru_cache

_PACKAGE_OF = {
    "slurmctld": "slurm-wlm",
    "slurmd": "slurm-wlm",
    "scontrol": "slurm-wlm",
    "munged": "munge",
    "slurmdbd": "slurmdbd",
    "mariadbd": "mariadb-server",
    "mariadb-install-db": "mariadb-server",
    "sshd": "openssh-server",
    "ssh": "openssh-client",
    "unshare": "util-linux",
    "nsenter": "util-linux",
    "ip": "iproute2",
    "setpriv": "util-linux",
    "sudo": "sudo",
    "python3": "python3-minimal",
}
_NAMESPACE_FLAGS = ("--mount", "--uts", "--pid", "--net", "--fork", "--mount-proc")
_CABLES = "link add lan type bridge\nlink add port type veth peer name eth0\n"


@lru_cache(maxsize=1)
def missing() -> str:
    """What `find_missing` says, asked once per process: every Slurm test asks."""
    return find_missing()


def find_missing() -> str:
    """One line that says why no testbed can run here, or empty text."""
    if os.geteuid() != 0:
        return "the Slurm testbed needs root; run it as root"
    packages = sorted({package for name, package in _PACKAGE_OF.items() if not program(name)})
    if packages:
        return f"the Slurm testbed needs: apt-get install {' '.join(packages)}"
    absent = [user for user in ("slurm", "munge", "mysql") if not _user_exists(user)]
    if absent:
        return f"the Slurm testbed needs the system users {', '.join(absent)} of Debian's packages"
    tried = subprocess.run(
        [program("unshare"), *_NAMESPACE_FLAGS, program("ip"), "-batch", "-"],
        input=_CABLES.encode(),
        capture_output=True,
        check=False,
    )
    if tried.returncode != 0:
        return f"the Slurm testbed needs namespaces, a bridge and veth: {_line(tried.stderr)}"
    return ""


def program(name: str) -> str:
    """Full path of an installed program, or empty text."""
    return (
        shutil.which(name, path="/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
        or ""
    )


def _user_exists(user: str) -> bool:
    try:
        pwd.getpwnam(user)
    except KeyError:
        return False
    return True


def _line(text: bytes) -> str:
    return text.decode(errors="backslashreplace").strip().partition("\n")[0][:200]
