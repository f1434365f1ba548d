"""Which file system a path lies on. Decides whether SQLite's locks and syncs can be trusted there.

Called by `audit_log.database` with the text of /proc/self/mountinfo. Pure.
"""

from dataclasses import dataclass

NETWORK = frozenset(
    {
        "9p",
        "afs",
        "beegfs",
        "beegfs_nodev",
        "ceph",
        "cifs",
        "davfs",
        "gfs2",
        "glusterfs",
        "gpfs",
        "lustre",
        "mfs",
        "ncpfs",
        "nfs",
        "nfs4",
        "ocfs2",
        "orangefs",
        "panfs",
        "pvfs2",
        "smb2",
        "smb3",
        "smbfs",
        "wekafs",
    }
)
"""Types on which `flock` or shared memory between processes is not what SQLite needs."""

_LOCAL_FUSE = frozenset({"fuse.fuse-overlayfs", "fuseblk"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Mount:
    """One line of mountinfo."""

    point: str
    type: str


def mount_of(path: str, mountinfo: str) -> Mount | None:
    """The mount that holds the absolute `path`; the last one mounted wins, as in the kernel."""
    best: Mount | None = None
    for line in mountinfo.splitlines():
        mount = _parse(line)
        if (
            mount
            and _holds(mount.point, path)
            and len(mount.point) >= len(best.point if best else "")
        ):
            best = mount
    return best


def is_network(type_name: str) -> bool:
    """Whether this type is remote; an unknown FUSE type is taken to be."""
    if type_name.startswith("fuse"):
        return type_name not in _LOCAL_FUSE
    return type_name in NETWORK


def _parse(line: str) -> Mount | None:
    """One line: `id parent major:minor root point options [fields] - type source options`."""
    left, separator, right = line.partition(" - ")
    fields, after = left.split(" "), right.split(" ")
    if not separator or len(fields) < 5:  # noqa: PLR2004  the mount point is the fifth field
        return None
    return Mount(point=_unescape(fields[4]), type=after[0])


def _unescape(text: str) -> str:
    r"""The kernel writes space, tab, newline and backslash as `\040` and so on."""
    for code, character in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        text = text.replace(code, character)
    return text


def _holds(point: str, path: str) -> bool:
    """Whether `path` lies at or below `point`."""
    return point == "/" or path == point or path.startswith(point + "/")
