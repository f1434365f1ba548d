"""What the bot's Slurm user may do is asked of slurmdbd, and each verb that it may not is named."""

import pytest

from actions.catalogue import contracts
from actions.shell import CommandFinished
from actions.slurm.rights import Rights, rights
from actions.slurm.tools import SlurmSettings
from config.ids import ClusterName
from tests.actions.slurm.conftest import ToldRunner, done

SETTINGS = SlurmSettings(cluster=ClusterName("mini"), own_user="nodewarden")
VERBS = {
    "node.drain": False,
    "node.return": False,
    "node.reboot": False,
    "job.requeue": True,
    "reservation.create": False,
    "service.start": False,
    "power.off": True,
}
NODES = {"node.drain", "node.return", "node.reboot"}
JOBS = {"job.requeue", "reservation.create"}
SILENT = done(stderr="sacctmgr: error: Sending PersistInit msg: Connection refused\n", code=1)


def asked(told: ToldRunner, answer: str | CommandFinished) -> Rights:
    told.tell("show user nodewarden", answer)
    return rights(SETTINGS, told, VERBS)


@pytest.mark.parametrize(
    ("answer", "lacks"),
    [
        ("nodewarden|Administrator\n", set()),
        ("nodewarden|Operator\n", NODES),
        ("nodewarden|None\n", NODES | JOBS),
        ("", NODES | JOBS),
        ("nodewarden|Emperor\n", NODES | JOBS),
    ],
)
def test_each_admin_level_lacks_its_verbs(told: ToldRunner, answer: str, lacks: set[str]) -> None:
    found = asked(told, answer)
    ending = {"node.reboot", "job.requeue", "power.off"} if lacks else set()
    assert found.lacks.keys() == lacks | ending
    for verb in ending - lacks:
        assert f"so {verb}, which could end jobs, is not tried: `sacctmgr" in found.lacks[verb]
    assert bool(found.said) == bool(lacks)
    for verb in lacks:
        assert verb in found.said[0]
        assert f"Slurm will refuse {verb}: `sacctmgr" in found.lacks[verb]


def test_what_grants_the_right_is_named(told: ToldRunner) -> None:
    assert (
        "`sacctmgr modify user nodewarden set adminlevel=Admin`"
        in asked(told, "nodewarden|Operator\n").said[0]
    )
    stranger = asked(told, "")
    assert "`sacctmgr add user nodewarden account=... adminlevel=Admin`" in stranger.said[0]
    assert "sees no other user's job" in stranger.said[0]


@pytest.mark.parametrize(
    "silent", [SILENT, CommandFinished(exit_code=None, timed_out=True, lost="no answer in 10 s")]
)
def test_without_accounting_what_may_end_jobs_is_lacking_and_a_drain_is_not(
    told: ToldRunner, silent: CommandFinished
) -> None:
    found = asked(told, silent)
    assert "accounting does not answer" in found.said[0]
    assert found.lacks.keys() == {"node.reboot", "job.requeue", "power.off"}
    assert "power.off could end jobs, and accounting does not answer" in found.lacks["power.off"]


def test_every_shipped_verb_that_writes_into_slurm_has_a_right() -> None:
    areas = {name.partition(".")[0] for name, spec in contracts().items() if not spec.looks_only}
    of_slurm = areas & {"node", "partition", "job", "reservation"}
    assert areas - of_slurm <= {
        "service",
        "page",
        "power",
        "canary",
    }  # these write nothing into Slurm
