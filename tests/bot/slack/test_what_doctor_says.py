"""`doctor` about Slack: one line for each thing, however much of it there is."""

from dataclasses import replace

from bot.standin.server import SlackStandIn
from tests.bot.slack.conftest import QUICK, Site


def bad(site: Site) -> list[str]:
    return [finding.text for finding in site.door.findings() if not finding.good]


def test_cards_that_cannot_be_shown_are_one_line_with_the_three_oldest(
    slack: SlackStandIn, cold: Site
) -> None:
    cold.pace = replace(QUICK, first_pause=60.0, longest_pause=60.0)
    cold.start()
    slack.fail_next("chat.postMessage", "channel_not_found", times=100_000)
    for number in range(5):
        cold.at_the_shell("ann", f"drain gpu-06{number} x")
    cold.until(lambda: any("5 cards are not shown" in line for line in bad(cold)))
    (line,) = (line for line in bad(cold) if "not shown" in line)
    assert [run for run in cold.runs() if f"{run}:" in line] == ["run-1", "run-2", "run-3"]
    assert "set clusters.*.channel" in line
