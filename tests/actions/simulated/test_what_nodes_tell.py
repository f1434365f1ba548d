"""What the simulated nodes tell of themselves, and what the world tells of what followed by itself."""

from datetime import timedelta

import pytest

from actions.contract import Unreadable
from actions.remote_values import Reach, ServiceState
from tests.actions.simulated.small import N1, N7, N8, SECOND, TRAINING, Served


def test_every_node_has_a_result_also_when_it_cannot_be_reached(served: Served) -> None:
    served.plugs.pull("refuse_ssh", node=N8)
    results = served.nodes.run([N7, N8], ["hostname"], SECOND)
    assert results[N7].output == "gpu-7\n"
    assert (results[N8].exit_code, results[N8].ok) == (None, False)
    assert served.nodes.run([N7], ["rm", "-rf", "/"], SECOND)[N7].exit_code == 127


@pytest.mark.parametrize(
    "plug, reach",
    [
        ("refuse_ssh", Reach.REFUSED),
        ("change_host_key", Reach.HOST_KEY_CHANGED),
        ("kill_host", Reach.TIME_OUT),
        ("cut_off", Reach.TIME_OUT),
    ],
)
def test_reachability_is_a_verdict_with_evidence(served: Served, plug: str, reach: Reach) -> None:
    served.plugs.pull(plug, node=N7)
    seen = served.nodes.reach(N7)
    assert seen.reach is reach
    assert seen.evidence
    with pytest.raises(Unreadable, match="gpu-7 gives no answer"):
        served.nodes.host_facts(N7)
    assert served.nodes.service(N7, "slurmd").state is ServiceState.UNKNOWN


def test_the_kernel_log_is_of_the_boot_that_was_asked_for(served: Served) -> None:
    served.plugs.pull("log_kernel", node=N7, line="NVRM: Xid (PCI:0000:4a:00): 79")
    assert "Xid" in served.nodes.kernel_log(N7, previous_boot=False).output
    served.plugs.pull("reboot", node=N7)
    assert served.nodes.kernel_log(N7, previous_boot=False).output == ""
    assert "Xid" in served.nodes.kernel_log(N7, previous_boot=True).output


def test_what_followed_by_itself_is_listed_with_its_reason(served: Served) -> None:
    served.plugs.pull("kill_host", node=N1)
    served.plugs.forward(timedelta(minutes=6))
    happened = [(each.what, each.subject) for each in served.plugs.history()]
    assert ("node DOWN", N1) in happened
    assert ("job requeued", str(TRAINING)) in happened
