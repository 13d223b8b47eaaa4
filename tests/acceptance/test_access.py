"""Signing in as people do: a link from the terminal, a browser, and a real proxy with TLS and a prefix."""

import json
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from frontdesk.model.access import Role
from frontdesk.model.visitors import MAY, Need
from frontdesk.web import ports
from frontdesk.web.pages.wording import say
from tests import browsing, loopback, peers
from tests.acceptance import program
from tests.browsing import PATIENCE_MILLISECONDS as PATIENCE
from tests.browsing import BrowserTab, playwright
from tests.docs import pages

pytestmark = pytest.mark.timeout(300)

PAGE = pages.ROOT / "docs" / "access.md"
AGENT = {"FRONTDESK_AGENT_DRIVER": "scripted"}
LINK = re.compile(r"http\S+/login#fdl_[\w-]{43}")
CADDY = """{{
    admin off
    auto_https disable_redirects
    skip_install_trust
    local_certs
    default_sni 127.0.0.1
    persist_config off
    storage file_system {folder}
}}
"""


@contextmanager
def proxied(folder: Path, port: int, target: int) -> Iterator[None]:
    """Caddy with the file of the page, at another address and with certificates of its own."""
    caddy = peers.require("caddy") / "caddy"
    (block,) = pages.blocks(PAGE, "caddyfile")
    site = block.text.replace("desk.example.org", f"https://127.0.0.1:{port}").replace("8642", str(target))
    file = folder / "Caddyfile"
    file.write_text(CADDY.format(folder=folder / "caddy") + site)
    env = {"HOME": str(folder), "PATH": os.environ["PATH"]}
    command = [str(caddy), "run", "--adapter", "caddyfile", "--config", str(file)]
    with subprocess.Popen(
        command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, bufsize=0
    ) as process:
        try:
            program.read_until(process, "serving initial configuration")
            with program.drained(process, folder / "caddy.log"):
                yield
        finally:
            process.kill()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with browsing.browser() as opened:
        yield opened


def login(home: Path, *options: str) -> str:
    told = program.run(home, "login", *options)
    assert told.returncode == 0, told.stderr
    assert LINK.fullmatch(told.stdout.strip())
    assert "It signs one browser in, once, until " in told.stderr
    return told.stdout.strip()


@browsing.needs_browser
def test_link_leads_through_a_proxy_with_a_prefix_and_tls_to_every_page(tmp_path: Path, browser: Any) -> None:
    port, target = loopback.free_port(), loopback.free_port()
    url = f"https://127.0.0.1:{port}/frontdesk"
    settings = {"FRONTDESK_SERVER_URL": url, "FRONTDESK_SERVER_PORT": str(target)}
    settings |= {"FRONTDESK_CONFIRM_PORT": "0"}
    with (
        proxied(tmp_path, port, target),
        program.start(tmp_path, "run", terminal=False, **settings) as process,
    ):
        greeting = program.read_until(process, "with which you sign in to the pages.")
        assert f"frontdesk is running at {url};" in greeting
        assert "fdl_" not in greeting, "what is no terminal may be a log"
        with (
            program.drained(process, tmp_path / "run.log"),
            browsing.visiting(browser, url, ignore_https_errors=True) as visitor,
        ):
            _sign_in_and_out(tmp_path, visitor, url)
            process.send_signal(signal.SIGTERM)
            process.wait(program.PATIENCE_SECONDS)
    logged = (tmp_path / "run.log").read_text() + (tmp_path / "caddy.log").read_text()
    assert "event=signed_in" in logged
    assert "fdl_" not in logged


def _sign_in_and_out(home: Path, visitor: BrowserTab, url: str) -> None:
    page, link = visitor.page, login(home)
    visitor.follow(link)
    page.wait_for_url(f"{url}/overview")
    visitor.sees("Signed in as")
    (cookie,) = visitor.context.cookies(url)
    kept = {name: cookie[name] for name in ("name", "path", "httpOnly", "secure", "sameSite")}
    assert kept == {
        "name": "__Secure-frontdesk",
        "path": "/frontdesk",
        "httpOnly": True,
        "secure": True,
        "sameSite": "Lax",
    }
    visitor.sees("● Live")
    for place in page.locator("header nav a").all():
        assert str(place.get_attribute("href")).startswith("/frontdesk/")
    _give_and_take(home, visitor, url)
    visitor.go("/approvals")
    visitor.sees("Nothing waits.")
    visitor.press("Sign out")
    playwright.expect(page.locator("#token")).to_be_visible(timeout=PATIENCE)
    assert visitor.context.cookies(url) == []
    page.wait_for_load_state("networkidle")  # its stream has ended, too: it may be loaded anew by both
    visitor.follow(link)
    visitor.sees("Nobody is known by this.")
    assert "#" not in page.url
    visitor.go("/turns?state=waiting")
    code = login(home, "--role", "viewer", "--name", "screen").partition("#")[2]
    page.locator("#token").fill(code)
    visitor.press("Sign in")
    visitor.sees("Signed in as screen")
    assert page.url == f"{url}/turns?state=waiting", "the page that was wanted"


def _give_and_take(home: Path, visitor: BrowserTab, url: str) -> None:
    """A token is made by a command, used by a program, and ended on the page of people."""
    told = program.run(home, "token", "add", "grafana", "--role", "viewer", "--json")
    headers = {"authorization": f"Bearer {json.loads(told.stdout)['token']}"}
    page = visitor.page
    with httpx.Client(headers=headers, verify=False, trust_env=False, timeout=60) as client:
        assert client.get(f"{url}/api/v1/status").status_code == 200
        visitor.go("/people")
        visitor.sees("grafana")
        page.evaluate("window.confirm = () => true")
        visitor.press(say("people.end_which", name="grafana"))
        playwright.expect(page.locator("#passes")).not_to_contain_text("grafana", timeout=PATIENCE)
        assert client.get(f"{url}/api/v1/status").status_code == 401


def test_link_is_shown_to_a_terminal(tmp_path: Path) -> None:
    chosen = {"FRONTDESK_SERVER_PORT": "0", "FRONTDESK_CONFIRM_PORT": "0"} | AGENT
    with program.start(tmp_path, "run", terminal=True, **chosen) as process:
        shown = program.read_until(process, "/login#fdl_")
        assert "open this once, within 10 minutes" in shown


def test_log_says_what_is_given_and_ended_at_the_terminal(tmp_path: Path) -> None:
    made = json.loads(program.run(tmp_path, "token", "add", "grafana", "--role", "viewer", "--json").stdout)
    assert program.run(tmp_path, "token", "revoke", "grafana").returncode == 0
    told = program.run(tmp_path, "audit", "export").stdout
    rows = [json.loads(json.loads(line)["body"]) for line in told.splitlines()]
    assert [(row["kind"], row["actor"], row["facts"]["pass"]) for row in rows] == [
        ("pass_given", "local", made["id"]),
        ("pass_ended", "local", made["id"]),
    ]
    assert made["token"] not in told
    assert "pass_ended" in program.run(tmp_path, "audit", "tail").stdout
    assert program.run(tmp_path, "audit", "verify").stdout.startswith("2 rows hold.")


def test_approvers_token_is_shown_by_the_first_start_that_succeeds(tmp_path: Path) -> None:
    with ports.listening("127.0.0.1", 0) as taken:
        number = str(taken.getsockname()[1])
        chosen = {"FRONTDESK_SERVER_PORT": number, "FRONTDESK_CONFIRM_PORT": "0"} | AGENT
        with program.start(tmp_path, "run", terminal=True, **chosen) as refused:
            program.read_until(refused, f"Port {number} of 127.0.0.1 is in use")
    token_file = tmp_path / ".frontdesk" / "confirm" / "approver.token"
    for is_first in (True, False):
        with program.start(tmp_path, "run", terminal=True, **chosen | {"FRONTDESK_SERVER_PORT": "0"}) as run:
            shown = program.read_until(run, "/login#fdl_")
        assert (token_file.read_text().strip() in shown) == is_first


def test_page_says_of_each_role_what_it_sees_and_may() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (.+?) \| (.+?) \|$", pages.read(PAGE), re.MULTILINE)
    told = {Role(role): (sees, may) for role, sees, may in rows}
    assert set(told) == set(Role) == set(MAY)
    for role, (sees, may) in told.items():
        needs = MAY[role]
        assert sees.startswith("everything") == (Need.LOOK_AT_ALL in needs)
        assert ("what is asked for" in sees or sees.startswith("everything")) == (
            Need.LOOK_AT_REQUESTS in needs
        )
        assert (may == "change nothing") == needs.isdisjoint({Need.ACT, Need.DECIDE, Need.ADMINISTER})
        assert ("decide" in may or may == "everything") == (Need.DECIDE in needs)
        assert (may == "everything") == (Need.ADMINISTER in needs)
