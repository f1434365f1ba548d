"""The way back from a reboot that slurmctld did not expect."""

import re

from bot.testbed import SlurmTestbed


def resume_after_a_reboot(testbed: SlurmTestbed, node: str) -> None:
    """Once; and once more only where slurmctld, which reckons in whole seconds, took the registration
    after it for another boot one second later. DOWN for any other reason fails."""

    def boots() -> list[int]:
        log = (testbed.layout.logs / "slurmctld.log").read_text("utf-8", "replace")
        words = rf"Node {node} unexpectedly rebooted boot_time=(\d+)"
        return [int(second) for second in re.findall(words, log)]

    before = boots()
    testbed.admin_resume(node)
    testbed.wait_for(lambda: testbed.node_states(node) in ({"IDLE"}, {"DOWN"}), f"{node} registers")
    if testbed.node_states(node) == {"DOWN"}:
        assert boots() == [*before, before[-1] + 1]
        testbed.admin_resume(node)
    testbed.wait_for_states(node, "IDLE")
