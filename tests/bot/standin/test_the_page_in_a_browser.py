"""A person in a real browser types commands and clicks buttons; hostile text stays text."""

import shutil
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import Select, WebDriverWait

from bot.standin.page import Panel, PanelRow
from bot.standin.server import SlackStandIn
from config.system_clock import SystemClock
from tests.bot.standin.conftest import Bot
from tests.patience import DEADLINE

needs_browser = pytest.mark.skipif(
    shutil.which("chromium") is None or shutil.which("chromedriver") is None,
    reason="chromium and chromium-driver are not installed",
)
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run"
    " --disable-background-networking --disable-component-update --disable-sync"
)
HOSTILE = "x<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>"


class Browser:
    """One browser window on the page."""

    def __init__(self, driver: webdriver.Chrome) -> None:
        self.driver = driver

    def wait(self, selector: str, text: str = "") -> WebElement:
        """The newest element of that selector that shows the text."""

        def found(driver: webdriver.Chrome) -> WebElement | None:
            script = (
                "return [...document.querySelectorAll(arguments[0])]"
                ".filter(e => e.textContent.includes(arguments[1])).pop() || null"
            )
            element: WebElement | None = driver.execute_script(script, selector, text)
            return element

        element = WebDriverWait(self.driver, DEADLINE, poll_frequency=0.05).until(found)
        assert element is not None
        return element

    def shown(self, selector: str) -> str:
        """The text of the first such element."""
        script = "return document.querySelector(arguments[0]).textContent"
        text: str = self.driver.execute_script(script, selector)
        return text

    def type(self, text: str) -> None:
        box = self.driver.find_element(By.ID, "text")
        box.send_keys(text)
        self.driver.find_element(By.CSS_SELECTOR, "#compose button").click()

    def become(self, name: str) -> None:
        self.wait("#me option", name)
        Select(self.driver.find_element(By.ID, "me")).select_by_visible_text(name)
        self.wait("#places button[aria-current=true]")


@pytest.fixture
def browser(tmp_path: Path, slack: SlackStandIn) -> Iterator[Browser]:
    options = webdriver.ChromeOptions()
    for flag in FLAGS.split():
        options.add_argument(flag)
    options.add_argument(f"--user-data-dir={tmp_path}")
    options.add_argument("--window-size=400,800")
    options.binary_location = str(shutil.which("chromium"))
    service = webdriver.ChromeService(executable_path=shutil.which("chromedriver"))
    driver = webdriver.Chrome(options=options, service=service)
    driver.get(slack.url)
    yield Browser(driver)
    driver.quit()


@pytest.mark.browser
@needs_browser
def test_a_typed_command_shows_a_card_and_a_click_updates_it(
    slack: SlackStandIn, online: Bot, browser: Browser
) -> None:
    browser.become("bob")
    browser.type("/ops run node-dropped gpu-03")
    browser.wait(".message", "waiting")
    browser.wait(".message button", "Approve").click()
    browser.wait(".message", "approved")
    assert online.seen[-1]["user"]["id"] == slack.person("bob").id
    assert slack.channel("#ops").expect("approved").buttons == ()


@pytest.mark.browser
@needs_browser
def test_hostile_text_is_shown_and_not_run(slack: SlackStandIn, bot: Bot, browser: Browser) -> None:
    text = {"type": "mrkdwn", "text": f"job `{HOSTILE}` {HOSTILE} &lt;!channel&gt;"}
    blocks = [
        {"type": "header", "text": {"type": "plain_text", "text": HOSTILE}},
        {"type": "section", "text": text, "fields": [text]},
        {"type": "context", "elements": [text]},
    ]
    slack.channel(f"#{HOSTILE}")
    slack.person(HOSTILE)
    bot.call("chat.postMessage", channel=slack.channel("#ops").id, text="x", blocks=blocks)
    bot.call("chat.postMessage", channel=slack.channel("#ops").id, text=HOSTILE)
    browser.wait(".message", "onerror")
    shown = browser.shown(".block-section")
    assert HOSTILE in shown
    assert "<!channel>" in shown
    assert browser.driver.title == "Slack stand-in"
    assert browser.driver.find_elements(By.CSS_SELECTOR, "img, body script ~ script") == []


@pytest.mark.browser
@needs_browser
def test_an_ephemeral_is_shown_to_its_person_only(
    slack: SlackStandIn, online: Bot, browser: Browser
) -> None:
    slack.person("ann").command("#ops", "/ops tell").expect_ephemeral("understood")
    browser.become("ann")
    browser.wait(".ephemeral", "understood")
    browser.become("bob")
    browser.wait("#messages", "Nothing here yet")


@pytest.mark.browser
@needs_browser
def test_a_form_is_filled_refused_and_sent(
    slack: SlackStandIn, online: Bot, browser: Browser
) -> None:
    browser.become("ann")
    browser.type("/ops form")
    browser.wait("#modal h2", "Run")
    field = browser.driver.find_element(By.CSS_SELECTOR, "#modal .input")
    field.send_keys("cpu")
    browser.wait("#modal button", "cpu-01").click()
    browser.wait("#modal .primary", "Start").click()
    browser.wait("#wrong", "Node: has no GPU")
    field.clear()
    field.send_keys("gpu-01")
    browser.wait("#modal .buttons button", "gpu-01").click()
    browser.wait("#modal .primary", "Start").click()
    slack.wait_until(lambda: slack.person("ann").views == ())


@pytest.mark.browser
@needs_browser
def test_a_reply_goes_into_the_thread_where_commands_do_not_work(
    slack: SlackStandIn, online: Bot, browser: Browser
) -> None:
    message = slack.person("ann").say("#ops", "gpu-03 is slow")
    browser.wait(".message .reply").click()
    browser.type("/ops status")
    browser.wait("#toasts div", "not supported in threads")
    browser.driver.find_element(By.ID, "text").clear()
    browser.type("@ops-bot status")
    message.expect_reply("you called")
    browser.wait(".thread .message", "you called")


@pytest.mark.browser
@needs_browser
def test_a_command_that_nobody_answers_is_told(
    slack: SlackStandIn, online: Bot, browser: Browser
) -> None:
    browser.become("ann")
    browser.type("/ops mute")
    browser.wait("#toasts div", "operation_timeout")


def test_a_panel_of_the_sandbox_is_shown_and_its_button_pressed() -> None:
    pressed: list[str] = []
    panel = Panel(
        title="Plugs",
        rows=lambda: [PanelRow(text="gpu-03", buttons=(("Pull", "pull gpu-03"),))],
        press=pressed.append,
    )
    with SlackStandIn(SystemClock(), extra_panels=[panel]) as slack:
        with urllib.request.urlopen(f"{slack.url}/ui/state") as answer:
            assert b'"Plugs"' in answer.read()
        wish = b'{"do": "panel", "panel": 0, "press": "pull gpu-03"}'
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(f"{slack.url}/ui/act", wish, headers)
        urllib.request.urlopen(request).close()
    assert pressed == ["pull gpu-03"]


@pytest.mark.parametrize(
    "headers", [{"Host": "evil.example:80"}, {"Origin": "http://evil.example"}]
)
@pytest.mark.parametrize("path", ["/", "/ui/state", "/ui/events"])
def test_another_site_gets_nothing(slack: SlackStandIn, headers: dict[str, str], path: str) -> None:
    request = urllib.request.Request(slack.url + path, headers=headers)
    with pytest.raises(urllib.error.HTTPError, match="403"):
        urllib.request.urlopen(request)


def test_a_form_of_another_site_presses_nothing(slack: SlackStandIn) -> None:
    request = urllib.request.Request(f"{slack.url}/ui/act", b"do=panel&panel=0")
    with pytest.raises(urllib.error.HTTPError, match="415"):
        urllib.request.urlopen(request)
