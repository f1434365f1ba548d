"""Secrets that were planted appear in no sink: ledger, artefacts, backup, log, Slack, pages, answers."""

import base64
import json
import re
from collections.abc import Iterator
from urllib.parse import quote

import pytest

from bot.standin.records import HOME_TEAM
from bot.standin.server import SlackStandIn
from config.system_clock import SystemClock
from tests.bot.lenient import LENIENT
from tests.faults.answers import told
from tests.faults.bots import Served, Yard, command

PAGE_TOKEN = "canary/page+token=47\\11"
PASSWORD = "canary-Pa55/w0rd"


def forms(secret: str) -> dict[str, str]:
    """In the forms in which programs repeat it; of base64 what does not hang on its surroundings."""
    found = {
        "raw": secret,
        "json": json.dumps(secret)[1:-1],
        "url": quote(secret, safe=""),
        "hidden in JSON": json.dumps(json.dumps(secret)[1:-1])[1:-1],
    }
    for shift in range(3):
        encoded = base64.b64encode(b"x" * shift + secret.encode()).decode()
        found[f"base64+{shift}"] = encoded[4 * (shift > 0) + 1 : len(secret) * 4 // 3 - 3]
    return found


def planted(secrets: list[str]) -> list[str]:
    """Lines as a node may print them."""
    lines = []
    for secret in secrets:
        encoded = [base64.b64encode(b"x" * n + secret.encode()).decode() for n in range(3)]
        lines += [secret, quote(secret, safe=""), json.dumps({"t": secret}), *encoded]
    return [*lines, f"PASSWORD={PASSWORD}", f'{{"db_password": "{PASSWORD}"}}']


@pytest.fixture
def slack() -> Iterator[SlackStandIn]:
    with SlackStandIn(SystemClock(), strictness=LENIENT) as opened:
        opened.person("ann")
        opened.channel("#ops")
        yield opened


def served(place: Yard, slack: SlackStandIn) -> Served:
    bot = place.bot(
        slack=(
            f"slack: {{bot_token: env:NW_BOT, app_token: env:NW_APP, team: {HOME_TEAM},"
            f" api_url: '{slack.base_url}'}}\n"
        ),
        person=f"slack: [{HOME_TEAM}/{slack.person('ann').id}], ",
        channel=f"    channel: {slack.channel('#ops').id}\n",
        page_token="env:NW_PAGE",
        environment={
            "NW_BOT": slack.bot_token,
            "NW_APP": slack.app_token,
            "NW_PAGE": PAGE_TOKEN,
        },
    )
    bot.start()
    slack.wait_for_bot()
    return bot


def test_no_planted_secret_reaches_any_sink(place: Yard, slack: SlackStandIn) -> None:
    secrets = [slack.bot_token, slack.app_token, PAGE_TOKEN]
    bot = served(place, slack)
    with place.server.lock:
        for line in planted(secrets):
            place.stage.world.plug("log_kernel", {"node": "gpu-003", "line": f"app: {line}"})
        reason = f"PASSWORD={PASSWORD} {slack.bot_token}"
        place.stage.world.plug("admin_drain", {"node": "gpu-065", "reason": reason, "by": "dana"})
        place.stage.world.plug("lose_gpus", {"node": "gpu-003", "present": 7})
        place.stage.world.plug("kill_host", {"node": "gpu-004"})
    said = [
        bot.say("run", "node-dropped", "gpu-003", "--reason", f"token {slack.bot_token}").text,
        bot.say("run", "node-dropped", "gpu-004").text,
        bot.say("drain", "gpu-065", "x").text,
        bot.say("drain", "gpu-068", f"PASSWORD={PASSWORD}").text,
        bot.say("node", "gpu-065").text,
        bot.say("node", "gpu-065", "--json").text,
        bot.say("drain", slack.bot_token, "x").text,
        bot.say("hands-off", "gpu-069", PAGE_TOKEN).text,
        bot.say("list", "hands-off").text,
        bot.say("foo", slack.app_token).text,
    ]
    commands = (
        f"/ops drain gpu-067 {slack.app_token} PASSWORD={PASSWORD}",
        f"/ops drain {slack.bot_token} x",
        f"/ops {slack.app_token} x",
    )
    said += [str(slack.person("ann").command("#ops", one).ack().payload) for one in commands]
    bot.wait(lambda: "gpu-067" in bot.lines("list", "marks"), "the drain from Slack")
    place.pager.wait_for("gpu-00")
    questions = (("list", "runs", "--all"), ("audit",), ("audit", "export"), ("doctor",))
    said += [bot.say(*question).text for question in questions]
    said += [bot.say("status", f"run-{number}", "--json").text for number in range(1, 6)]
    assert bot.data is not None
    saved = bot.folder / "saved.db"
    said.append(command("audit", "backup", str(bot.data / "nodewarden.db"), str(saved)).text)
    assert saved.exists()
    assert bot.stop() == 0
    sinks = {
        "command line": "\n".join(said),
        "log": bot.log,
        "pages": "\n".join(place.pager.came),
        "Slack": json.dumps(sent(slack)),
        "cluster": str(place.plugs.effects()),
    }
    for file in (*bot.data.rglob("*"), saved):
        if file.is_file() and not file.name.endswith(".ballast"):
            sinks[file.name] = file.read_bytes().decode("latin-1")
    assert len(sinks) > 8, "the ledger, its artefacts and the backup are there"
    assert "[redacted]" in sinks["saved.db"]
    leaks = [
        f"{form} of {secret} in {sink}: {around(text, shape)}"
        for secret in (*secrets, PASSWORD)
        for form, shape in forms(secret).items()
        for sink, text in sinks.items()
        if shape in text
    ]
    assert not leaks, "\n".join(leaks)


def sent(slack: SlackStandIn) -> list[object]:
    """Every call of the bot with what it carried, but for the header that must hold the token."""
    return [
        {key: value for key, value in vars_of(call).items() if key != "token"}
        for call in slack.calls()
    ]


def vars_of(call: object) -> dict[str, str]:
    names = [name for name in dir(call) if not name.startswith("_")]
    return {name: repr(getattr(call, name)) for name in names}


def around(text: str, shape: str) -> str:
    at = text.index(shape)
    return re.sub(r"\s+", " ", text[max(0, at - 80) : at + len(shape) + 20])


def test_a_secret_that_cannot_be_read_is_named_and_not_shown(place: Yard) -> None:
    bot = place.bot(page_token="env:NW_NOT_SET")
    bot.launch()
    bot.wait(lambda: not bot.lives, "its end")
    assert bot.stop() == 1
    told("serve: a secret that is not set", bot.refusal, place.folders)
    file = bot.folder / "token"
    file.write_text(PAGE_TOKEN)
    file.chmod(0o644)
    other = place.bot("other", page_token=f"file:{file}")
    other.launch()
    other.wait(lambda: not other.lives, "its end")
    assert other.stop() == 1
    assert PAGE_TOKEN not in other.log
    told("serve: a secret that others can read", other.refusal, place.folders)
