"""A session without its proof, in a real browser: other ports of the host have the cookie, and only look."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx
import pytest

from frontdesk.web.visitors import COOKIE
from tests import browsing
from tests.acceptance.test_browser import Desk, browser, desk
from tests.browsing import playwright

__all__ = ["browser", "desk"]

pytestmark = [browsing.needs_browser, pytest.mark.timeout(300)]

SECRET = "aB3dE5gH7jK9mN2pQ4"
PICTURE = """<!doctype html><title>Harmless</title><img id="picture" src="/approvals/picture.png">"""
"""Under the path of the cookie, which the browser then sends along: cookies know no ports."""


@contextmanager
def agents_port() -> Iterator[tuple[str, list[str]]]:
    """What an agent serves on another port of the same host, and the cookies that it is sent."""
    got: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            got.extend(self.headers.get_all("cookie", []))
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.end_headers()
            self.wfile.write(PICTURE.encode())

        def log_message(self, format: str, *args: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", got
        finally:
            server.shutdown()
            thread.join()


def test_other_port_of_the_host_gets_the_cookie_and_decides_nothing(browser: Any, desk: Desk) -> None:
    asked, hiding = desk.ask("wanted_by_the_agent"), desk.ask("hiding", details={"password": SECRET})
    with browsing.visiting(browser, desk.page_url) as visitor, agents_port() as (url, got):
        visitor.sign_in(desk.token)
        page = visitor.context.new_page()
        page.goto(url)
        assert page.evaluate("Object.keys(localStorage)") == [], "storage knows ports"
        page.close()
        (cookie,) = {each for each in got if COOKIE in each}
        headers = {
            "cookie": cookie,
            "origin": desk.page_url,
            "referer": f"{desk.page_url}/approvals/{asked['id']}",
            "sec-fetch-site": "same-origin",
            "x-frontdesk-page": "1",
        }
        with httpx.Client(base_url=desk.page_url, trust_env=False, headers=headers) as thief:
            path = f"/approvals/{asked['id']}"
            assert "wanted_by_the_agent" in thief.get(path).text, "it looks"
            for body in ({"approves": True}, {"approves": False}):
                said = body | {"digest": asked["digest"]}
                assert thief.post(f"{path}/decision", json=said).status_code == 401
            for proof in cookie.partition("=")[2].split("."):
                said = {"approves": True, "digest": asked["digest"]}
                sent = {"x-frontdesk-proof": proof}
                assert thief.post(f"{path}/decision", json=said, headers=sent).status_code == 401
            assert thief.post(f"/approvals/{hiding['id']}/reveal", json={}).status_code == 401
            assert thief.post("/login/end", json={}).status_code == 401
        assert [desk.status(each) for each in (asked, hiding)] == ["pending", "pending"]
        assert desk.logged(asked) == desk.logged(hiding) == ["submitted", "refused"]
        visitor.go(f"/approvals/{asked['id']}")
        visitor.press("Deny")
        visitor.sees("It is denied")


def test_browser_that_lost_the_proof_shows_what_there_is_and_the_way_to_sign_in(
    browser: Any, desk: Desk
) -> None:
    asked = desk.ask("proof_was_lost", details={"api_key": SECRET})
    with browsing.visiting(browser, desk.page_url) as visitor:
        visitor.sign_in(desk.token)
        visitor.go(f"/approvals/{asked['id']}")
        other = visitor.open_page()
        other.goto(f"{desk.page_url}/approvals")
        (before,) = visitor.context.cookies(f"{desk.page_url}/approvals")
        other.evaluate("localStorage.clear()")
        for page in (visitor.page, other):
            page.reload()
            playwright.expect(page.locator("body")).to_contain_text("proof_was_lost")
            buttons = page.get_by_role("main").get_by_role("button")
            assert buttons.all_inner_texts() == ["Sign in"]
        desk_refuses(visitor)
        other.get_by_label("token").fill(desk.token)
        other.get_by_role("button", name="Sign in").click()
        playwright.expect(other.get_by_role("button", name="Sign out")).to_be_visible()
        playwright.expect(visitor.page.get_by_role("button", name="Deny")).to_be_visible()
        (after,) = visitor.context.cookies(f"{desk.page_url}/approvals")
        assert before["value"] != after["value"]
        headers = {"cookie": f"{COOKIE}={before['value']}"}
        assert httpx.get(f"{desk.page_url}/approvals", headers=headers).status_code == 401, "it has ended"
        visitor.press("Deny")
        visitor.sees("It is denied")


def desk_refuses(visitor: Any) -> None:
    """What a button would send is refused, and the page says how to go on."""
    visitor.page.evaluate("localStorage.setItem('frontdesk-proof', 'stale')")
    visitor.page.reload()
    visitor.press("Deny")
    visitor.sees("Sign in again to do this")
    assert visitor.page.evaluate("localStorage.getItem('frontdesk-proof')") is None
    assert visitor.button_count("Sign in") == 1
