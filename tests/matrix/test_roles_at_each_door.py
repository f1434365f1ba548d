"""Role x permission x door: asked at each door, compared with what was read in review."""

from bot.commands import VERBS, Verb
from config.permissions import Permission
from tests.matrix.commands import COMMANDS, EXEMPT, Command, gaps
from tests.matrix.everything import help_per_role, matrix, verdicts
from tests.matrix.golden_file import golden
from tests.matrix.site import Spot, at_slack
from tests.matrix.table import render


def test_each_role_may_at_each_door_what_the_table_says(as_root: None) -> None:
    assert render(matrix()) == golden("roles.txt")


def test_help_lists_only_what_a_role_may_use_somewhere(site: Spot) -> None:
    assert help_per_role(site) == golden("help.txt")


def test_can_says_why_in_the_words_of_the_decision(site: Spot) -> None:
    assert verdicts(site) == golden("can.txt")


def test_every_permission_and_every_verb_is_in_the_table_or_exempted() -> None:
    assert gaps(frozenset(Permission), frozenset(VERBS), COMMANDS, EXEMPT) == []


def test_a_permission_that_is_forgotten_or_both_driven_and_exempted_is_noticed() -> None:
    drain = Command(permission=Permission.NODE_DRAIN, text="drain {node}", proof="started")
    few = frozenset({Permission.NODE_DRAIN, Permission.NODE_READ})
    found = gaps(few, frozenset({Verb.DRAIN, Verb.HELP}), (drain,), {Permission.NODE_DRAIN: "x"})
    assert found == [
        "node.read is neither driven nor exempted",
        "node.drain is driven and exempted",
        "verb help is not driven",
    ]


def test_can_understands_a_mention_in_slack(site: Spot) -> None:
    assert "otto may node.drain" in at_slack(site, "vic", "can @otto node.drain gpu-100")
    assert "vic may not node.drain" in at_slack(site, "vic", "can @vic node.drain gpu-100")
