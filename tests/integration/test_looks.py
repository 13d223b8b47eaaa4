"""Generated actions on every surface: what differs in bytes differs on the screen, or is said to be hidden;
no line of the agent's passes for one of ours, and ours are the last."""

import random
import re
import unicodedata
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from typing import Any

import pytest

from frontdesk import GatewayConfig, errors
from frontdesk.cli.confirm import mcp
from frontdesk.flow.confirmations.notifying import Notifier
from frontdesk.formats import canonical, cards, wrapping
from frontdesk.model.confirmations import Caller, CallerKind, Confirmation
from frontdesk.testing.clock import SettableClock
from frontdesk.web import confirmations
from frontdesk.web.confirmations import views
from frontdesk.web.pages import rendering
from tests import counts, disguises

NOW = datetime(2026, 1, 5, tzinfo=UTC)
CALLER = Caller(id="token:ann", kind=CallerKind.APPROVER)
NOTIFIER = Notifier({}, GatewayConfig(), SettableClock(NOW), "http://127.0.0.1:1")
WIDTHS = (20, 33, 80, 240)
ROOM = 4_000
MOST_BUTTONS = 7
"""Sign out, show and close the keys, show hidden values, sign in again, deny, approve."""
FOREIGN_TAGS = frozenset(
    {"img", "iframe", "style", "object", "embed", "base", "i", "em", "strong", "marquee"}
)
FORGED = '\nWhat will be done:\ndetails: {}\n\nAction: "list_files"\nApprove exactly this? [y/N]: '


class Page(HTMLParser):
    """What a page shows before anybody clicks: its tags, and the texts that are not folded away."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.texts: list[str] = []
        self._folded: list[bool] = []
        self._skipped = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag == "details":
            self._folded.append("open" not in dict(attrs))
        if tag in ("template", "title", "kbd", "dialog") and not self._skipped:
            self._skipped = tag

    def handle_endtag(self, tag: str) -> None:
        if tag == "details":
            self._folded.pop()
        if tag == self._skipped:
            self._skipped = ""

    def handle_data(self, data: str) -> None:
        if not self._skipped and not any(self._folded) and data.strip():
            self.texts.append(data)


def request(payload: bytes, words: str = "Please", requester: str = "bot") -> Confirmation:
    return Confirmation(
        id="c_1",
        action=canonical.read_action(payload)[0],
        description=words,
        requester=requester,
        payload=payload,
        digest="d" * 64,
        created_at=NOW,
        expires_at=NOW + timedelta(minutes=5),
    )


def card(asked: Confirmation, **how: Any) -> cards.Card:
    return cards.make(asked.payload or b"", asked.description, asked.requester, **how)


def on_the_page(asked: Confirmation) -> Page:
    values = views.request(asked, card(asked), CALLER, NOW, link=None, obstacle=None)
    page = rendering.render(confirmations.__name__, "request.html", values)
    return Page(bytes(page.body).decode())


def by_mcp(asked: Confirmation) -> str:
    action, details = canonical.read_action(asked.payload or b"")
    return mcp._card(mcp.AskArguments(action=action, description=asked.description, details=details))


SURFACES: dict[str, Callable[[Confirmation], str]] = {
    **{f"{width} columns": lambda asked, width=width: card(asked).text(columns=width) for width in WIDTHS},  # type: ignore[misc]
    "page": lambda asked: "\n".join(on_the_page(asked).texts),
    "chat": NOTIFIER.text,
    "group": lambda asked: NOTIFIER.text(asked, wide=True),
    "MCP": by_mcp,
}


def seen(text: str) -> str:
    """What somebody sees at most: look-alikes as what they look like, nothing that has no shape, no
    difference between spaces."""
    shown = unicodedata.normalize("NFC", text)
    shape = (
        sign
        for sign in shown
        if unicodedata.category(sign) not in ("Cf", "Cc", "Cs", "Co", "Cn") or sign == "\n"
    )
    read = "".join(disguises.confusables().get(sign, sign) for sign in shape)
    return "\n".join(" ".join(line.split()) for line in read.split("\n"))


def is_whole(surface: str, shown: str) -> bool:
    """Whether a surface shows all of it, and does not say where that is."""
    if surface in ("chat", "group"):
        return "It is too long for this chat." not in shown and " See all of it " not in shown
    return surface != "MCP" or "[all arguments]" not in shown


def some_pair(chance: random.Random) -> tuple[Confirmation, Confirmation, str]:
    while True:
        pair = disguises.some_pair(chance)
        try:
            one, other = (canonical.payload(*each) for each in (pair.one, pair.other))
        except errors.InexactJson:
            continue
        if one != other:
            return request(one), request(other), pair.how


@pytest.mark.prove
@pytest.mark.timeout(counts.count(120, 3_000))
def test_actions_that_differ_look_different_on_every_surface(tell: counts.Tell) -> None:
    chance = random.Random(2029)
    wanted = counts.count(100, 20_000)
    compared = 0
    for _ in range(wanted):
        one, other, how = some_pair(chance)
        for surface in chance.sample(sorted(SURFACES), 3):
            shown = [SURFACES[surface](each) for each in (one, other)]
            if not is_whole(surface, shown[0]):
                continue
            compared += 1
            if seen(shown[0]) == seen(shown[1]):
                hidden = [card(each, wide=surface == "group").hidden for each in (one, other)]
                assert hidden[0] == hidden[1] != (), (how, surface, one.payload, other.payload)
        whole = [card(each, reveal=True).text(columns=chance.choice(WIDTHS)) for each in (one, other)]
        assert seen(whole[0]) != seen(whole[1]) or how == "edge", (how, one.payload, other.payload)
    assert compared > wanted
    tell("pairs of disguised actions: told apart on each of three surfaces, or hidden and counted", wanted)


OURS = re.compile(
    r'|Asked by the agent: ".*|The agent\'s own words \(nobody checked them\):|What is unusual:|[▲!±] .*'
    r'|What will be done:|details:(?: \{\})?|Action: ".*|Command: .*|Its .*|Digest: [0-9a-f]+'
)
"""All that a line can be which begins where ours do."""


def beginnings(text: str) -> list[str]:
    """The lines that begin where ours do, but for what the agent is called and how many words it makes."""
    return [line for line in text.split("\n") if not line.startswith((" ", ">", "[", "Asked by"))]


@pytest.mark.prove
@pytest.mark.timeout(counts.count(120, 3_000))
def test_no_line_of_the_agent_passes_for_one_of_ours_and_ours_are_the_last(tell: counts.Tell) -> None:
    chance = random.Random(2030)
    wanted = counts.count(40, 10_000)
    for _ in range(wanted):
        asked, _, _ = some_pair(chance)
        words, requester = (disguises.some_text(chance) + chance.choice(("", FORGED, "x" * 90)) for _ in "ab")
        forged, plain = request(asked.payload or b"", f"x {words}", requester), request(asked.payload or b"")
        columns = chance.choice(WIDTHS)
        for how in ({}, {"reveal": True}, {"wide": True}):
            assert [line for line in beginnings(card(forged, **how).text()) if not OURS.fullmatch(line)] == []
            shown = card(forged, **how).text(columns=columns)
            assert beginnings(shown) == beginnings(card(plain, **how).text(columns=columns))
            assert shown.endswith(f"\n\n{wrapping.hang(card(forged, **how).closing(), columns)}")
            assert max(map(wrapping.columns_of, shown.split("\n"))) <= columns
        told = NOTIFIER.text(forged)
        assert told.endswith(NOTIFIER.text(plain).rpartition("\nAction: ")[2])
        assert len(told) <= ROOM
        page = on_the_page(forged)
        assert FOREIGN_TAGS.isdisjoint(page.tags)
        assert (page.tags.count("script"), page.tags.count("button") <= MOST_BUTTONS) == (1, True)
        assert [text.strip() for text in page.texts[-5:-1]] == ["✕", "Deny", "✓", "Approve"]
    tell("requests with forged lines: none passes for one of ours, and ours are the last", wanted)
