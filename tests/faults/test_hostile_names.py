"""Names and words that nobody means well: refused by name, nothing done, no process started."""

import pytest

from bot.local_client import talk
from bot.local_wire import Ask
from tests.faults.answers import told
from tests.faults.bots import Answer, Served, Word

TOUCH = '@x";touch F;"'
NAMES: dict[str, str] = {
    "unknown node": "gpu-999",
    "empty node set": "",
    "only spaces": "  ",
    "a range with one unknown node": "gpu-[079-081]",
    "a shell in quotes": TOUCH,
    "a command in dollars": "$(touch F)",
    "a semicolon": "gpu-001;touch F",
    "every node": "*",
    "a question mark": "gpu-00?",
    "30 million nodes": "gpu-[1-30000000]",
    "numbers beyond counting": "gpu-[1-99999999999999]",
    "an option of ssh": "-oProxyCommand=x",
    "a newline in a name": "gpu-001\ngpu-002",
    "smart quotes": "“gpu-001”",
    "a group of ClusterShell": "@all",
    "a path": "../../etc/passwd",
    "a zero-width space": "gpu-001\u200b",
    "a right-to-left override": "gpu-\u202e100",
    "an escape of a terminal": "gpu-\x1b[31m001",
    "Cyrillic letters": "gрu-001",
    "a range that runs backwards": "gpu-[009-001]",
    "an open bracket": "gpu-[001-",
    "a null byte is a word of its own": "ALL",
    "a protected host": "sim-ctl",
}


def refused(bot: Served, what: str, answer: Answer) -> None:
    """It was said why, and nothing happened."""
    assert answer.code in {1, 2}, answer
    assert answer.out == ""
    assert "\x1b" not in answer.errors
    assert "\u202e" not in answer.errors
    assert "Traceback" not in answer.errors
    told(what, answer.errors, bot.yard.folders)


@pytest.mark.parametrize("what", NAMES)
def test_a_name_that_is_none_is_refused_at_the_command_line(shared: Served, what: str) -> None:
    refused(shared, f"drain: {what}", shared.say("drain", "--", NAMES[what], "x"))


@pytest.mark.parametrize("what", ["a shell in quotes", "an option of ssh", "every node"])
@pytest.mark.parametrize("verb", ["run", "plan", "node", "hands-off", "return", "status"])
def test_every_verb_that_takes_a_node_refuses_it(shared: Served, verb: str, what: str) -> None:
    words = {
        "run": ("node-dropped", NAMES[what]),
        "plan": ("drain-node", NAMES[what], "reason=x"),
        "hands-off": (NAMES[what], "why"),
    }.get(verb, (NAMES[what],))
    reply = shared.ask(verb, *words)
    assert reply["kind"] == "refused"
    told(f"{verb}: {what}", "\n".join(reply["lines"]))


BYTES: dict[str, tuple[Word, ...]] = {
    "a name that is not UTF-8": ("drain", b"gpu-\xff01", "x"),
    "a verb that is not UTF-8": ("run", b"node-\xe9", "gpu-001"),
    "a run that is not UTF-8": ("status", b"run-\xff"),
    "a parameter that is not UTF-8": ("run", "drain-node", "gpu-001", b"reas\xffon=x"),
    "a parameter that is none": ("run", "drain-node", "gpu-001", "colour=red"),
    "a runbook that is none": ("run", "node-droped", "gpu-001"),
    "a verb that is none": ("plan", "drian-node", "gpu-001"),
    "a version that is none": ("run", "drain-node", "gpu-001", "--version", "1.10"),
    "a version that was never released": ("run", "drain-node", "gpu-001", "--version", "99"),
    "a version with digits of another script": ("run", "drain-node", "gpu-001", "--version", "²"),
    "no reason": ("run", "drain-node", "gpu-001"),
    "two nodes where one is wanted": ("return", "gpu-[001-002]"),
    "a run that is none": ("abort", "run-4711"),
    "a run number without end": ("status", "9" * 5000),
    "a run number in another script": ("status", "١٢"),
    "a cluster that is none": ("drain", "gpu-001", "x", "--cluster", "$(touch F)"),
    "a list that is none": ("list", "racks"),
    "a state that is none": ("list", "nodes", "drian"),
    "a person who is none": ("can", "@<!channel>", "node.drain"),
    "a permission that is none": ("can", "@shell", "node.drian"),
    "help for nothing": ("help", "$(touch F)"),
    "a reason of 5,000 characters": ("drain", "gpu-001", "x" * 5000),
    "an audit question that is none": ("audit", "target=gpu-001", "since=yesterday"),
    "an audit field that is none": ("audit", "colour=red"),
    "hands off without a reason": ("hands-off", "gpu-001"),
    "both done and not done": ("resume", "run-1", "--done", "--not-done"),
    "a limit that is none": ("halt", "--clear-limit", "everything", "x"),
}


@pytest.mark.parametrize("what", BYTES)
def test_words_that_mean_nothing_are_refused_with_what_would(shared: Served, what: str) -> None:
    verb, *words = BYTES[what]
    assert isinstance(verb, str)
    refused(shared, f"words: {what}", shared.say(verb, *words))


def test_of_all_this_no_process_was_started_no_run_begun_and_nothing_changed(
    shared: Served,
) -> None:
    for name in NAMES.values():
        key = f"k{hash(name)}"
        for words in (("drain", name, "x"), ("run", "node-dropped", name), ("node", name)):
            reply = next(talk(shared.socket, Ask(words=words, key=key, follow=False)))["reply"]
            assert reply["kind"] in {"refused", "misread"}, (words, reply)
    shared.yard.rounds(shared)
    assert shared.started() == []
    assert shared.lines("list", "runs", "--all") == "no runs"
    assert shared.yard.effects() == []
    assert not list(shared.folder.rglob("F"))


def test_a_node_in_two_partitions_is_one_node(shared: Served) -> None:
    """gpu-065 to gpu-068 are in train and in short."""
    plan = shared.say("plan", "drain-node", "gpu-[067-069]", "reason=x")
    assert plan.code == 0, plan
    assert plan.out.count("on gpu-067") == 1
    facts = shared.lines("node", "gpu-067")
    assert "short, train" in facts or "train, short" in facts
