"""The bot as a process: opens everything, listens at its doors, and ends cleanly on a signal.

Started by `nodewarden serve`. What is under way is finished or parked at a step boundary.
"""

import asyncio
import contextlib
import getpass
import logging
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from actions.catalogue import Ground, open_pager
from actions.shell import Runner
from bot.bot_sockets import to_listen
from bot.local_door import LocalDoor
from bot.slack.mention import SlackMentions
from bot.wiring import Bot, open_bot
from config.load import load
from config.redaction import Redactor
from config.secret_store import SecretStore
from config.secrets import SecretRef
from config.settings import Settings
from config.system_clock import SystemClock

log = logging.getLogger(__name__)


def ground(settings: Settings) -> Ground:
    """What every area stands on; reads the secrets once, to know what must never be shown."""
    secrets = SecretStore(os.environ)
    redactor = Redactor(secrets.resolve(reference) for reference in _references(settings))
    return Ground(
        clock=SystemClock(),
        redactor=redactor,
        runner=Runner(redactor.text),
        secrets=secrets,
        pause=lambda length: time.sleep(length.total_seconds()),
        os_user=getpass.getuser(),
    )


def _references(settings: Settings) -> Iterator[SecretRef]:
    """Every secret that the settings name."""
    if settings.slack is not None:
        yield settings.slack.bot_token
        yield settings.slack.app_token
    for backend in settings.pages:
        if backend.token is not None:
            yield backend.token


def serve(paths: list[Path], say: Callable[[str], None]) -> None:
    """Run until SIGTERM or SIGINT. Raises ConfigErrors, StoreRefused, SecretError, Problems,
    CannotListen.
    """
    settings = load(paths)
    below = ground(settings)
    mentions = SlackMentions()
    bot = open_bot(settings, below, open_pager(settings, below, mentions.poster))
    try:
        place = to_listen(settings.bot.socket, settings.bot.data_folder)
    except BaseException:
        bot.close()
        raise
    door = LocalDoor(place.path, bot.desk, bot.identities, bot.answers)
    try:
        say(f"the command line finds the bot at {place.path}: {place.note}")
        bot.start()
        door.start()
        asyncio.run(_until_told(bot, below, mentions))
    finally:
        with contextlib.suppress(OSError):
            door.stop()
        bot.close()


async def _until_told(bot: Bot, below: Ground, mentions: SlackMentions) -> None:
    """Keep the Slack door open until a signal comes."""
    told = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, told.set)
    slack = None
    if bot.settings.slack is not None:
        from bot.slack.door import SlackDoor

        slack = SlackDoor(bot, below, mentions)
        await slack.open()
    log.info("nodewarden is ready")
    await told.wait()
    if slack is not None:
        await slack.close()
