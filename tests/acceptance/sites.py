"""A gateway with its site, as a user starts it: it can be killed and started again at the same address."""

import itertools
import json
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from frontdesk.formats import webhooks
from tests import browsing, loopback, samples
from tests.acceptance import program
from tests.acceptance.services import token_of
from tests.acceptance.test_run import SECRET, Receiver, request
from tests.browsing import BrowserTab, playwright

SCRIPTED = 'driver = "scripted"'
CONFIGURATION = """
[agent]
{agent}

[server]
port = {port}

[confirm]
port = {confirm_port}

[checkpoints]
enabled = true
working_dir = {working_dir}

[channels.webhook]
secret_env = "SHOP_SECRET"
callback_url = "{callback}"
"""


class SiteDesk:
    """People who write over a webhook, and somebody with a browser."""

    def __init__(self, home: Path, receiver: Receiver, more: str = "", *, agent: str = SCRIPTED) -> None:
        self.home = home
        self.work = home / "work"
        self.work.mkdir()
        self.port = loopback.free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._process: subprocess.Popen[bytes] | None = None
        self._numbers = itertools.count(1)
        folder = home / ".frontdesk"
        folder.mkdir()
        values: dict[str, Any] = {"port": self.port, "agent": agent}
        values |= {"confirm_port": loopback.free_port(), "callback": receiver.url}
        text = CONFIGURATION.format(working_dir=json.dumps(str(self.work)), **values)
        (folder / "frontdesk.toml").write_text(text + more)

    @contextmanager
    def running(self) -> Iterator["SiteDesk"]:
        arguments = ("run", "--log-level", "warning")
        with program.start(self.home, *arguments, SHOP_SECRET=SECRET) as process:
            program.read_until(process, "/approvals")
            self._process = process
            yield self
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
                assert process.wait(program.PATIENCE_SECONDS) == 0, "pages that listen keep it from ending"

    def kill(self) -> None:
        assert self._process
        self._process.send_signal(signal.SIGKILL)
        self._process.wait(program.PATIENCE_SECONDS)

    @property
    def token(self) -> str:
        """Of the owner."""
        return token_of(self.home)

    def say(self, text: str, chat: str = "c1", user: str = "u1", **fields: Any) -> None:
        """Somebody writes in a chat of the webhook."""
        event_id = f"e{next(self._numbers)}"
        named = {"id": event_id, "chat_id": chat, "user_id": user, "text": text}
        body = json.dumps(named | fields).encode()
        headers = webhooks.signed_headers(SECRET, event_id, datetime.now(UTC), body)
        status, answer = request(self.url, "POST", "/channels/webhook", body, dict(headers))
        assert status == 202, answer

    def ask(self, *arguments: str) -> Any:
        """What a command says."""
        done = program.run(self.home, *arguments, "--json", SHOP_SECRET=SECRET)
        assert done.returncode == 0, done.stderr + done.stdout
        return json.loads(done.stdout)

    def login_link(self, *options: str) -> str:
        told = self.ask("login", *options)
        found = re.search(r"http://[^\"\s]+", json.dumps(told))
        assert found, told
        return found[0]


def enter(tab: BrowserTab, desk: SiteDesk) -> None:
    """Sign in with the link that the program gives."""
    tab.follow(desk.login_link())
    playwright.expect(tab.page.locator(".rail nav")).to_be_visible(timeout=browsing.PATIENCE_MILLISECONDS)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with browsing.browser() as opened:
        yield opened


@pytest.fixture(scope="module")
def receiver() -> Iterator[Receiver]:
    with Receiver().serving() as opened:
        yield opened


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory, receiver: Receiver) -> Iterator[SiteDesk]:
    with SiteDesk(tmp_path_factory.mktemp("home"), receiver).running() as opened:
        yield opened


@pytest.fixture(scope="module", params=samples.SIZES)
def member(request: pytest.FixtureRequest, browser: Any, desk: SiteDesk) -> Iterator[BrowserTab]:
    """Somebody who is in, on a desktop and on a phone."""
    options = {"viewport": samples.SIZES[request.param]} | samples.KINDS[request.param]
    with browsing.visiting(browser, desk.url, **options) as opened:
        enter(opened, desk)
        opened.page.close()
        yield opened


@pytest.fixture
def tab(member: BrowserTab) -> Iterator[BrowserTab]:
    with browsing.another_page(member) as opened:
        yield opened
