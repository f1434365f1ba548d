"""The bot of the sandbox reads a configuration that a site could have written."""

from pathlib import Path

from bot.sandbox import configuration
from bot.sandbox.configuration import PEOPLE, Places
from bot.sandbox.sandbox import Sandbox
from config.load import load
from config.people import Directory


def test_the_file_is_a_good_configuration_with_five_people_of_slack(
    still: Sandbox, tmp_path: Path
) -> None:
    places = Places(folder=tmp_path)
    places.file.write_text(configuration.text(still.playground, still.slack, places))
    settings = load([places.file])
    assert {name: settings.people[name].roles for name in PEOPLE} == {
        name: (role,) for name, role in PEOPLE.items()
    }
    for name in PEOPLE:
        assert settings.people[name].slack == (f"T00000001/{still.slack.person(name).id}",)
    assert settings.slack is not None
    assert settings.slack.api_url == still.slack.base_url
    assert set(settings.clusters["sandbox"].pools) == {"train", "short", "spare"}


def test_no_secret_stands_in_the_file(still: Sandbox, tmp_path: Path) -> None:
    text = configuration.text(still.playground, still.slack, Places(folder=tmp_path))
    assert still.slack.bot_token not in text
    assert still.slack.app_token not in text


def test_who_started_the_sandbox_may_type_commands_and_approve_nothing(
    still: Sandbox, tmp_path: Path
) -> None:
    places = Places(folder=tmp_path)
    places.file.write_text(configuration.text(still.playground, still.slack, places))
    entry = Directory(load([places.file])).by_name("shell")
    assert entry is not None
    assert entry.shared
