"""One card on every surface: page, page of a link, terminal, chat and MCP say the same, in the same order."""

from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from typing import Any, NamedTuple

import httpx
import pytest

from frontdesk import GatewayConfig
from frontdesk.confirm.client import SyncClient
from frontdesk.flow.confirmations.notifying import Notifier
from frontdesk.formats import canonical, cards
from frontdesk.model.confirmations import Confirmation
from frontdesk.testing.clock import SettableClock
from frontdesk.web.confirmations import views
from tests.acceptance import terminals
from tests.acceptance.test_browser import Desk, alone
from tests.acceptance.test_confirm_mcp import Agent, starting

COLUMNS = 4_000
SECRET = "aB3dE5gH7jK9"
FORGED = "Harmless.\n" * 40 + 'What will be done:\n\nAction: "list_files"\nApprove exactly this? [y/N]: y'
REQUESTS: dict[str, tuple[str, dict[str, Any]]] = {
    "a short command": ("run_command", {"argv": ["git", "push", "--force"], "cwd": "/srv"}),
    "a file": ("delete_file", {"path": "/srv/data/a b.txt"}),
    "a statement": ("query", {"database": "prod", "sql": "DELETE FROM orders\nWHERE id > 7"}),
    "money": ("transfer_funds", {"to": "DE02 1203 0000", "amount": 1200.5, "currency": "EUR"}),
    "a long script": ("run_script", {"script": "\n".join(f"echo {n}" for n in range(60))}),
    "one of the ten": ("wipe_database", {"database": "customers_prod", "host": "db1"}),
    "one without a target": ("rotate_keys", {}),
    "a secret": ("login", {"env": {"API_KEY": SECRET}, "host": "db1"}),
    "a word by a secret's name": ("dropdb", {"argv": ["dropdb", "--password", "production"]}),
    "unseen signs": ("open", {"path": "report-\u202efdp.exe"}),
    "look-alikes": ("wipe_d\u0251tabase", {"d\u0251tabase": "prod", "\u0440\u0430th": "/srv"}),
    "another writing": (
        "\u0443\u0434\u0430\u043b\u0438\u0442\u044c",
        {"\u0444\u0430\u0439\u043b": "\u043e\u0442\u0447\u0451\u0442 \u6f22\u5b57 \U0001f600"},
    ),
    "one of the ten with a secret": (
        "exec_remote",
        {"host": "db1", "env": {"TOKEN": SECRET}, "argv": ["rm", "-rf", "/srv"]},
    ),
    "what nobody can read": ("run", {"content": "AAAA" * 100, "encoding": "base64"}),
    "lines that repeat": ("write", {"text": "a\n" + "\n" * 2_999 + "rm -rf /\n" + "b\n" * 40}),
    "one long line": ("write", {"path": "/srv/x", "text": "word " * 300 + "end"}),
    "deep and mixed": ("set", {"a": {"b": [{"c": [1, 2.5, True, None, "", " "]}, []], "d": {}}}),
    "lines like ours": (
        "note",
        {"text": 'Action: "list_files"\nApprove exactly this? [y/N]: y\n> Harmless.'},
    ),
    "an address with a password": ("fetch", {"url": f"https://ann:{SECRET}@db1.example.org/?q=1"}),
    "no arguments": ("reboot", {}),
}


class Read(HTMLParser):
    """The texts of a page, in their order."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self._inside = ""
        self.texts: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._inside = tag

    def handle_data(self, data: str) -> None:
        if self._inside not in ("script", "style", "title"):
            self.texts.append(data)


class Room(NamedTuple):
    """The service, an approver's browser and an agent."""

    desk: Desk
    browser: httpx.Client
    agent: Agent


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Room]:
    with (
        alone(tmp_path_factory.mktemp("home")) as desk,
        closing(httpx.Client(base_url=desk.page_url, trust_env=False)) as browser,
        starting(desk.home, desk.url) as agent,
    ):
        own = {"x-frontdesk-page": "1", "origin": desk.page_url, "sec-fetch-site": "same-origin"}
        browser.post("/login", json={"token": desk.token}, headers=own).raise_for_status()
        yield Room(desk, browser, agent)


def on_the_page(room: Room, asked: dict[str, Any]) -> str:
    return "\n".join(Read(room.browser.get(f"/approvals/{asked['id']}").raise_for_status().text).texts)


def behind_the_link(room: Room, asked: dict[str, Any]) -> str:
    address = room.desk.page_url + room.desk.link(asked)
    return "\n".join(Read(httpx.get(address).raise_for_status().text).texts)


def in_the_terminal(room: Room, asked: dict[str, Any]) -> str:
    arguments = ("confirm", "approve", asked["id"], "--url", room.desk.url)
    with terminals.seated(room.desk.home, *arguments, COLUMNS=str(COLUMNS)) as seat:
        return seat.read_until(asked["question"]).replace("\r\n", "\n")


def question(card: cards.Card) -> str:
    """What a terminal asks first, at the beginning of a line."""
    if card.hidden:
        return "\nShow what is hidden? The log says that you looked. [y/N]: "
    return f"\nTo approve, type {card.typed.what}: " if card.typed else "\nApprove exactly this? [y/N]: "


def in_a_chat(_: Room, asked: dict[str, Any]) -> str:
    now = datetime(2026, 1, 5, tzinfo=UTC)
    payload = canonical.payload(asked["action"], asked["details"])
    request = Confirmation(
        **{name: asked[name] for name in ("id", "action", "description", "requester")},
        payload=payload,
        digest=canonical.digest(payload),
        created_at=now,
        expires_at=now + timedelta(minutes=5),
    )
    return Notifier({}, GatewayConfig(), SettableClock(now), None).text(request)


def over_mcp(room: Room, asked: dict[str, Any]) -> str:
    said = {name: asked[name] for name in ("action", "description", "details")}
    answer = room.agent.call("request_confirmation", wait_seconds=0, **said)
    return f'Asked by the agent: "agent"\n{answer["content"][0]["text"]}'


PAGES = (on_the_page, behind_the_link)
SURFACES = (on_the_page, behind_the_link, in_the_terminal, in_a_chat, over_mcp)


@pytest.mark.parametrize("name", REQUESTS)
def test_every_surface_shows_the_same_card_in_the_same_order(room: Room, name: str) -> None:
    desk, (action, details) = room.desk, REQUESTS[name]
    description = f"{name}\n{FORGED}"
    card = cards.make(canonical.payload(action, details), description, "agent")
    ticket = SyncClient(desk.url).request(action, description, details)
    asked: dict[str, Any] = {"action": action, "description": description, "details": details}
    asked |= {"id": ticket.id, "requester": "agent", "digest": ticket.digest}
    asked |= {"expires_at": desk.shown(asked)["expires_at"], "question": question(card)}
    words = ("Asked by the agent", *card.words)
    unusual = (*(each.text for each in card.unusual), *([card.note] if card.note else []))
    lines = [line.text for line in card.lines]
    in_lines = [*words, *unusual, *lines, *(each.shown for each in card.matters)]
    # A page shows what is done first, large, and once more by the buttons, which are always in sight.
    headline = [part.text for part in card.headline]
    on_pages = [*headline, *unusual, *words, *lines, *(part.text for part in views.repeated(card.headline))]
    for surface in SURFACES:
        expected = on_pages if surface in PAGES else in_lines
        shown = surface(room, asked)
        place = 0
        for text in expected:
            found = shown.find(text, place)
            assert found >= 0, (surface.__name__, text, shown)
            place = found + len(text)
        rest = shown[place:]
        assert "Harmless" not in rest, surface.__name__
        assert "list_files" not in rest, surface.__name__
        assert (SECRET in shown) is False, surface.__name__
