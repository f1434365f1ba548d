"""A person at the page breaks a node, types one command, and sees it repaired."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By

from bot.sandbox.sandbox import Sandbox
from tests.bot.standin.test_the_page_in_a_browser import FLAGS, Browser, needs_browser


@pytest.fixture
def browser(tmp_path: Path, lively: Sandbox) -> Iterator[Browser]:
    options = webdriver.ChromeOptions()
    for flag in FLAGS.split():
        options.add_argument(flag)
    options.add_argument(f"--user-data-dir={tmp_path}")
    options.binary_location = str(shutil.which("chromium"))
    service = webdriver.ChromeService(executable_path=shutil.which("chromedriver"))
    driver = webdriver.Chrome(options=options, service=service)
    driver.get(lively.url)
    yield Browser(driver)
    driver.quit()


@pytest.mark.browser
@needs_browser
def test_plug_command_card(browser: Browser, lively: Sandbox) -> None:
    job = lively.playground.train(["gpu-02", "gpu-03"])
    browser.wait(".cell", "02 ■B").click()
    browser.wait("aside .text", "gpu-02: ALLOCATED")
    browser.driver.find_element(By.XPATH, "//aside//button[text()='kill slurmd']").click()
    browser.become("ann")
    browser.type("/ops run node-dropped gpu-02")
    browser.wait(".message", "did service.start gpu-02")
    seen = lively.playground.view().job(job)
    assert seen is not None
    assert (seen.state, seen.restarts) == ("RUNNING", 0)
