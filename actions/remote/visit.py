"""One visit that reads all facts of a node: the command, and what its answer says.

Pure. Used by `actions.remote.nodes`. Every part can fail by itself and then counts as not read; a
visit that was broken off still gives the parts that were complete. Nothing is changed on the node.
"""

import re
import shlex
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from actions.remote.settings import RemoteSettings
from actions.remote_values import BootId, CommandResult, HostFacts
from config.clock import EPOCH, MICROSECOND

_FAULTS = (
    r"Xid|NVRM|MCE|mce:|Machine check|AER:|EDAC|Hardware Error|blocked for more than|soft lockup"
    r"|hard LOCKUP|[Pp]anic|Oops|BUG:|Out of memory|I/O error|Remounting filesystem read-only"
)
_TAIL_LINES = 40
_LONGEST_TAIL = 4000
_LONGEST_LOSS = 200
_BOOT_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII)
_GRES = re.compile(r"\bGres Name=(\w+)(?: Type=([\w.-]+))? Count=(\d{1,9})\b", re.ASCII)
_MILLISECOND = timedelta(milliseconds=1)
_WANTED = ("boot", "slurmd", "kernel", "previous", "gpus", "clock", "clock-end")
"""What counts as not read where it is missing; a munge that does not answer was read."""

BOOT_COMMAND = ("cat", "/proc/sys/kernel/random/boot_id")
"""Reads nothing but the boot, as the visit does: a plan asks thousands of hosts for it."""

# Each part prints its own begin and end with a word that no log line of the node can know.
# `once`: a reading that hangs in a driver outlives its time-out and keeps the lock, so that it is
# not started a second time on top of the first (hands 4).
_SCRIPT = r"""PATH=$PATH:/usr/sbin:/sbin; LC_ALL=C; export PATH LC_ALL
word=$1
part() { printf '%s begin %s\n' "$word" "$1"; shift; "$@"; printf '\n%s end %s\n' "$word" "$?"; }
locks=/run/lock; test -w $locks || locks=/tmp
once() { lock=$locks/nodewarden-$1-$(id -u); shift; flock -w 3 -E 75 "$lock" timeout -k 2 LIMIT "$@"; }
faults() { tail=$("$@" 2>/dev/null) || return 1; printf '%s\n' "$tail" | grep -aE FAULTS | tail -n LINES; }
thisboot() { journalctl -k -b 0 -o short-iso --no-pager -n 20000 || dmesg; }
lastboot() { journalctl -k -b -1 -o short-iso --no-pager -n 20000; }
credential() { timeout -k 2 LIMIT munge -n | timeout -k 2 LIMIT unmunge -n; }
part clock date +%s%N
part boot cat /proc/sys/kernel/random/boot_id
part booted grep '^btime ' /proc/stat
part slurmd once slurmd SLURMD -C
part version SLURMD -V
part gres once gres SLURMD -G
part munge credential
part kernel faults thisboot
part previous faults lastboot
part gpus once gpus GPUS
part clock-end date +%s%N
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """When the bot asked and when the answer was there, by the bot's clock."""

    asked: datetime
    answered: datetime


def visit_command(word: str, settings: RemoteSettings) -> tuple[str, ...]:
    """Reads everything in one go. `word` is new at each visit and marks the parts."""
    limit = str(max(1, int(settings.read_limit.total_seconds())))
    script = _SCRIPT
    for name, value in (
        ("LIMIT", limit),
        ("FAULTS", shlex.quote(_FAULTS)),
        ("LINES", str(_TAIL_LINES)),
        ("SLURMD", shlex.join(settings.slurmd)),
        ("GPUS", shlex.join(settings.gpu_list)),
    ):
        script = script.replace(name, value)
    return ("nice", "-n", "19", "sh", "-c", script, "nodewarden", word)


def parse_visit(output: str, word: str, span: Span) -> HostFacts:
    """The facts in what a visit printed, whole or broken off."""
    return facts_in(_good_parts(output, word), span)


def facts_in(parts: Mapping[str, str], span: Span) -> HostFacts:
    """The facts in the parts that were read, whoever read them."""
    hardware = dict(pair.split("=", 1) for pair in parts.get("slurmd", "").split() if "=" in pair)
    boot = _BOOT_ID.search(parts.get("boot", ""))
    gpus = parts.get("gpus")
    return HostFacts(
        boot_id=boot[0] if boot else "",
        gpus_seen=None if gpus is None else _gpu_lines(gpus),
        memory_mib=_number(hardware.get("RealMemory", "")),
        cpus=_number(hardware.get("CPUs", "")),
        clock_offset_ms=_clock_offset(parts, span),
        kernel_tail=parts.get("kernel", "").strip()[-_LONGEST_TAIL:],
        previous_boot_tail=parts.get("previous", "").strip()[-_LONGEST_TAIL:],
        booted_at=_booted_at(parts.get("booted", "")),
        slurmd_version=_version(parts.get("version", "")),
        munge_ok="munge" in parts,
        gres_seen=_gres(parts.get("gres", "")),
        not_read=tuple(name for name in _WANTED if name not in parts),
    )


def parse_boot(result: CommandResult) -> BootId:
    """The boot in what `BOOT_COMMAND` printed; never one for a host that gave no answer."""
    said = result.output.strip()
    if result.ok and _BOOT_ID.fullmatch(said):
        return BootId(value=said)
    lost = result.lost or result.errors.strip() or f"exit code {result.exit_code}: {said}"
    return BootId(lost=lost[:_LONGEST_LOSS])


def _good_parts(output: str, word: str) -> dict[str, str]:
    """Text of each part that is complete and ended with code 0."""
    pattern = re.compile(
        rf"^{re.escape(word)} begin ([a-z-]+)\n(.*?)^{re.escape(word)} end (\d+)$",
        re.MULTILINE | re.DOTALL,
    )
    return {name: text for name, text, code in pattern.findall(output) if code == "0"}


def _gpu_lines(text: str) -> int:
    return sum(1 for line in text.splitlines() if line.startswith("GPU "))


def _gres(text: str) -> str:
    """What `slurmd -G` lists, counted by name and type."""
    found = Counter[str]()
    for name, kind, count in _GRES.findall(text):
        found[f"{name}:{kind}" if kind else name] += int(count)
    return ",".join(f"{name}:{count}" for name, count in sorted(found.items()))


def _version(text: str) -> str:
    found = re.match(r"slurm(?:-wlm)? (\d[\w.+-]{0,30})", text.strip(), re.ASCII)
    return found[1] if found else ""


def _booted_at(text: str) -> datetime | None:
    found = re.fullmatch(r"btime (\d{1,11})", text.strip(), re.ASCII)
    return datetime.fromtimestamp(int(found[1]), UTC) if found else None


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 16 else None  # noqa: PLR2004  2**53


def _clock_offset(parts: Mapping[str, str], span: Span) -> int | None:
    """Node clock minus bot clock, the smallest that the readings allow.

    The first reading was made after we asked and the last before we had the answer; how long the
    way took is not known, so a difference within it is none.
    """
    first, last = (_moment(parts.get(name, "")) for name in ("clock", "clock-end"))
    if first is None or last is None:
        return None
    most = (first - span.asked) // _MILLISECOND
    least = (last - span.answered) // _MILLISECOND
    return least if least > 0 else min(most, 0)


def _moment(text: str) -> datetime | None:
    digits = text.strip()
    if not re.fullmatch(r"\d{16,20}", digits, re.ASCII):
        return None
    return EPOCH + int(digits) // 1000 * MICROSECOND
