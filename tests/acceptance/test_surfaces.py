"""One card on every surface: page, page of a link, terminal, chat and MCP say the same, in the same order."""

from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from typing import Any

import httpx
import pytest

from frontdesk import GatewayConfig
from frontdesk.confirm.client import SyncClient
from frontdesk.flow.confirmations.notifying import Notifier
from frontdesk.formats import canonical, cards
from frontdesk.model.confirmations import Confirmation
from frontdesk.testing.clock import SettableClock
from frontdesk.web.confirmations import views
from tests.acceptance import program
from tests.acceptance.test_browser import Desk, alone
from tests.acceptance.test_confirm_mcp import starting

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


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    with alone(tmp_path_factory.mktemp("home")) as opened:
        yield opened


def on_the_page(desk: Desk, asked: dict[str, Any]) -> str:
    own = {"x-frontdesk-page": "1", "origin": desk.page_url, "sec-fetch-site": "same-origin"}
    with closing(httpx.Client(base_url=desk.page_url, trust_env=False)) as http:
        http.post("/approvals/session", json={"token": desk.token}, headers=own).raise_for_status()
        return "\n".join(Read(http.get(f"/approvals/{asked['id']}").raise_for_status().text).texts)


def behind_the_link(desk: Desk, asked: dict[str, Any]) -> str:
    return "\n".join(Read(httpx.get(desk.page_url + desk.link(asked)).raise_for_status().text).texts)


def in_the_terminal(desk: Desk, asked: dict[str, Any]) -> str:
    arguments = ("confirm", "approve", asked["id"], "--url", desk.url)
    with program.start(desk.home, *arguments, terminal=True, COLUMNS="300") as process:
        shown = program.read_until(process, asked["question"])
        process.kill()
    return shown.replace("\r\n", "\n")


def question(card: cards.Card) -> str:
    """What a terminal asks first."""
    if card.hidden:
        return "looked. [y/N]: "
    return f"type {card.typed.what}: " if card.typed else "Approve exactly this? [y/N]: "


def in_a_chat(_: Desk, asked: dict[str, Any]) -> str:
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


def over_mcp(desk: Desk, asked: dict[str, Any]) -> str:
    said = {name: asked[name] for name in ("action", "description", "details")}
    with starting(desk.home, desk.url) as agent:
        answer = agent.call("request_confirmation", wait_seconds=0, **said)
    return f'Asked by the agent: "agent"\n{answer["content"][0]["text"]}'


PAGES = (on_the_page, behind_the_link)
SURFACES = (on_the_page, behind_the_link, in_the_terminal, in_a_chat, over_mcp)


@pytest.mark.parametrize("name", REQUESTS)
def test_every_surface_shows_the_same_card_in_the_same_order(desk: Desk, name: str) -> None:
    action, details = REQUESTS[name]
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
        shown = surface(desk, asked)
        place = 0
        for text in expected:
            found = shown.find(text, place)
            assert found >= 0, (surface.__name__, text, shown)
            place = found + len(text)
        rest = shown[place:]
        assert "Harmless" not in rest, surface.__name__
        assert "list_files" not in rest, surface.__name__
        assert (SECRET in shown) is False, surface.__name__
