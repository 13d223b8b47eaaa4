"""What people are told of a request: nothing in it passes for words of ours, and all of it fits."""

import logging
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest

from frontdesk import GatewayConfig, HomeChannel, Platform, PlatformConfig, SessionSource, errors
from frontdesk.contracts.channels import Capabilities
from frontdesk.flow.confirmations import submissions
from frontdesk.flow.confirmations.notifying import CONFIRMATION, HOME, LONGEST_CHARACTERS, Notifier
from frontdesk.flow.crew import ask
from frontdesk.flow.delivery import Sender, Sending
from frontdesk.flow.pacing import Pacing
from frontdesk.flow.parts import Parts
from frontdesk.formats import canonical, cards, precedents
from frontdesk.model.confirmations import Caller, CallerKind, Confirmation, Settings, Status
from frontdesk.model.deliveries import Delivery, DeliveryClaim, Settlement
from frontdesk.model.lanes import Lease
from frontdesk.model.platforms import PlatformFacts
from frontdesk.model.running import Running
from frontdesk.model.turns import Turn
from frontdesk.testing.clock import SettableClock

NOON = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)
ANYBODY = Caller(id="anybody", kind=CallerKind.ANYBODY)
PAGE = "https://desk.example"
LINK = f"\nOr see it and decide here; the link is for you alone: {PAGE}/approvals/c_1?t={'s' * 150}"
OFFICE = HomeChannel(platform=Platform.MATRIX, chat_id="office", name="Office")
SHOP = HomeChannel(platform=Platform.TELEGRAM, chat_id="shop", name="Shop")
SECRET = "aB3dE5gH7jK9"
FAKE = '\n\nAction: "list_files"\n\nSee all of it before you decide: http://evil.example'


def confirmation(action: str = "wipe", details: Any = None, **fields: Any) -> Confirmation:
    payload = canonical.payload(action, {} if details is None else details)
    values = {"id": "c_0123456789abcdef", "description": "Please", "requester": "agent"} | fields
    return Confirmation(
        action=action,
        payload=payload,
        digest=canonical.digest(payload),
        created_at=NOON,
        expires_at=NOON + timedelta(minutes=5),
        **values,
    )


def arguments(asked: Confirmation) -> str:
    return cards.make(asked.payload or b"", "", "").arguments()


def teller(*homes: HomeChannel, page: str | None = PAGE, **capabilities: Any) -> Notifier:
    """One who tells in Matrix and in Telegram, which have these homes; Matrix can do these things."""
    channels: Any = {
        ("matrix", None): SimpleNamespace(capabilities=Capabilities(**capabilities)),
        ("telegram", None): SimpleNamespace(capabilities=Capabilities()),
    }
    platforms = {str(home.platform): PlatformConfig(home_channel=home) for home in homes}
    return Notifier(channels, GatewayConfig(platforms=platforms), SettableClock(NOON), page)


def place(home: HomeChannel) -> SessionSource:
    return SessionSource(platform=home.platform, chat_id=home.chat_id)


# nothing passes for words of ours


@pytest.mark.parametrize("end", ["\n", "\r\n", "\x85", "\u2028", "\x0b"])
def test_requester_writes_no_line_of_its_own(end: str) -> None:
    text = teller().text(confirmation(requester="Ann" + FAKE.replace("\n", end)))
    shown = [line for line in text.splitlines() if line.startswith(("Action:", "See all"))]
    assert shown == ['Action: "wipe"']


def test_action_that_is_too_long_writes_no_line_of_its_own() -> None:
    asked = confirmation("wipe" + FAKE, {"text": "x" * 5_000})
    text = teller().text(asked)
    assert [line for line in text.splitlines() if "evil.example" in line and "Action:" not in line[:8]] == []
    assert f"See all of it before you decide: {PAGE}/approvals/{asked.id}" in text.splitlines()[2]
    assert text.splitlines()[3].startswith('Action: "wipe')


@pytest.mark.parametrize("status", [Status.APPROVED, Status.DENIED, Status.EXPIRED])
def test_what_became_of_it_is_one_line(status: Status) -> None:
    asked = confirmation("wipe" + FAKE, status=status, resolved_by="x" + FAKE, resolved_as="y" + FAKE)
    assert len(teller().text(asked).splitlines()) == 1


@pytest.mark.parametrize("sign", ["\u202e", "\u2066", "\u200b", "\u200d", "\u3164", "\ufe0f", "\u00ad"])
def test_what_somebody_calls_themselves_is_quoted_beside_who_they_are(sign: str) -> None:
    posing = f'Ro{sign}ot" (matrix:root) (approved)'
    quoted = '"Root\\" (matrix:root) (approved)" (matrix:eve)'
    asked = confirmation(on_behalf_of="matrix:eve", on_behalf_name=posing)
    assert quoted in teller().text(asked)
    assert precedents.person_of(asked) == quoted
    ended = confirmation(status=Status.APPROVED, resolved_by=f"matrix:e{sign}ve", resolved_as=posing)
    text = teller().text(ended)
    assert '("Root\\" (matrix:root) (approved)")' in text
    assert f"matrix:e⟨U+{ord(sign):04X}⟩ve" in text, "another id looks like another"


@pytest.mark.parametrize("name", ["action", "requester"])
@pytest.mark.parametrize(
    "sign", ["\n", "\r", "\t", "\x1b", "\x85", "\u2028", "\u202e", "\u2066", "\u200b", "\u200d", "\ufeff"]
)
def test_name_with_what_cannot_be_seen_is_refused(name: str, sign: str) -> None:
    data = {"action": "wipe", "description": "Please", "requester": "me"} | {name: f"a{sign}b"}
    with pytest.raises(errors.InvalidInput, match=f"{name}.*control characters"):
        submissions.read_submission(data, ANYBODY, Settings())


def test_description_may_have_lines_and_names_any_letters() -> None:
    data = {"action": "löschen 東京", "description": "Please\nnow", "requester": "Зоя 👩"}
    read = submissions.read_submission(data, ANYBODY, Settings())
    assert (read.action, read.description, read.requester) == tuple(data.values())


# all of it fits


PROSES = ["Please", "\n".join("a" * 400), "word " * 300, "password=hunter2 " * 60]
ACTIONS = [0, 100, 1_000, 3_000, 3_700, 3_900, 20_000]
LIMITS = [150, 300, 600, 1_200, 2_000, 4_000, 4_096, None]


@pytest.mark.parametrize("limit", LIMITS)
@pytest.mark.parametrize("link", ["", LINK])
def test_text_fits_whatever_is_asked(limit: int | None, link: str) -> None:
    most = min(limit or LONGEST_CHARACTERS, LONGEST_CHARACTERS)
    for size in ACTIONS:
        for prose in PROSES:
            for who in ("me", "w" * 200):
                asked = confirmation("a" * 200, {"text": "x" * size}, description=prose, requester=who)
                text = teller().text(asked, limit, link)
                whole = arguments(asked)
                assert len(text) <= most
                assert whole in text or "See all of it before you decide" in text
                assert asked.id in text


@pytest.mark.parametrize("limit", LIMITS)
@pytest.mark.parametrize("status", [Status.APPROVED, Status.DENIED, Status.EXPIRED])
def test_what_became_of_it_fits(limit: int | None, status: Status) -> None:
    asked = confirmation("a" * 200, status=status, resolved_by="b" * 300, resolved_as='"' * 200)
    assert len(teller().text(asked, limit)) <= min(limit or LONGEST_CHARACTERS, LONGEST_CHARACTERS)


def test_words_are_cut_before_the_action() -> None:
    asked = confirmation(details={"text": "x" * 300}, description="word " * 100)
    text = teller().text(asked, 600)
    assert arguments(asked) in text
    assert cards.AGENTS_WORDS in text
    assert asked.description.strip() not in text
    assert f"/approve {asked.id}" in text


@pytest.mark.parametrize("limit", LIMITS)
def test_hidden_values_are_counted_with_where_they_are_shown(limit: int | None) -> None:
    asked = confirmation(details={"token": SECRET, "env": {"API_KEY": SECRET}})
    text = teller().text(asked, limit)
    assert SECRET not in text
    if arguments(asked) in text:
        assert "2 values are hidden: env.API_KEY (12 characters), token (12 characters). See what" in text
        assert f"frontdesk confirm show {asked.id} --reveal" in text
    else:
        assert "See all of it before you decide" in text
    assert "/approve" not in text, "what is hidden here is not approved here"
    assert "hidden" not in teller().text(confirmation(details={"text": "x"}))


def test_small_chat_sees_who_asks_what_and_where_all_of_it_is() -> None:
    asked = confirmation(details={"text": "x" * 300})
    text = teller().text(asked, 300, LINK)
    assert text.startswith('Asked by the agent: "agent"\n')
    assert 'Action: "wipe"\n' in text
    assert "/approve " not in text, "nobody approves what they have not seen"
    assert f"{PAGE}/approvals/{asked.id}" in text
    assert f"/deny {asked.id}" in text


def test_where_others_read_words_by_a_secrets_name_stay_masked() -> None:
    asked = confirmation(details={"argv": ["dropdb", "--password", "production"]})
    alone, together = (teller().text(asked, wide=wide) for wide in (False, True))
    assert ('"production"' in alone, f"/approve {asked.id}" in alone) == (True, True)
    assert ("production" in together, "/approve" in together) == (False, False)
    assert "1 value is hidden: argv[2]" in together


@pytest.mark.parametrize(
    ("details", "tapped"),
    [
        ({"to": "ann"}, True),
        ({"token": SECRET}, False),
        ({"text": "x" * 20_000}, False),
    ],
)
def test_buttons_decide_only_about_what_is_all_seen(details: Any, tapped: bool) -> None:
    (told,) = teller(SHOP)(confirmation(details=details))
    assert ("digest" in told.extra) is tapped
    (typed,) = teller(SHOP)(confirmation("wipe_database", details))
    assert "digest" not in typed.extra, "its target is typed"


def test_link_counts() -> None:
    home = teller(OFFICE, text_limit=700)
    home.offer_links(lambda asked: f"{PAGE}/approvals/{asked.id}?t={'s' * 200}")
    (told,) = home(confirmation(description="word " * 100))
    assert len(told.text) <= 700
    assert "?t=sss" in told.text


# who is told


def test_next_home_is_found_after_one_that_collects() -> None:
    homes = teller(OFFICE, SHOP, collects=True)
    asked = confirmation()
    (first,) = homes(asked)
    (second,) = homes.after(first, asked)
    assert [each.to.chat_id for each in (first, second)] == ["shop", "office"]
    assert second.lane.startswith("box:")
    assert homes.after(second, asked) == []


def asking(source: SessionSource) -> Turn:
    """A turn that asks."""
    return Turn(
        id="t_1",
        session_key="agent:main:matrix:dm:ann",
        source=source,
        text="hi",
        event_id="e1",
        received_at=NOON,
    )


def test_question_in_the_chat_says_which_message_it_belongs_to() -> None:
    turn = asking(SessionSource(platform=Platform.MATRIX, chat_id="ann"))
    assert [each.event_id for each in teller().in_chat(turn, confirmation())] == ["e1"]
    assert [each.event_id for each in teller(SHOP)(confirmation())] == [None]


def test_home_that_collects_is_told_once() -> None:
    homes = teller(OFFICE, collects=True)
    assert len(homes(confirmation())) == 1
    assert homes.in_chat(asking(place(OFFICE)), confirmation()) == ()


def test_home_that_collects_hands_on_to_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(Platform._facts, "matrix", PlatformFacts(telling_rank=0))
    homes = teller(OFFICE, SHOP, collects=True)
    (first,) = homes(confirmation())
    assert [each.to.chat_id for each in homes.after(first, confirmation())] == ["shop"]


class Post:
    """Takes deliveries, and is asked about confirmations."""

    def __init__(self, *known: Confirmation) -> None:
        self._known = {each.id: each for each in known}
        self.added: list[Delivery] = []

    async def settle(self, claim: DeliveryClaim, settlement: Settlement, now: datetime) -> None: ...

    async def add(self, told: list[Delivery]) -> None:
        self.added += told

    async def with_precedent(self, asked: Confirmation) -> Confirmation:
        return asked

    async def find(self, confirmation_id: str) -> Confirmation:
        if confirmation_id not in self._known:
            raise errors.UnknownConfirmation(confirmation_id=confirmation_id)
        return self._known[confirmation_id]


async def fail(delivery: Delivery, told: Notifier, post: Post) -> None:
    """Try to send it for the first time, there being no channel."""
    parts: Any = SimpleNamespace(
        clock=SettableClock(NOON),
        elapsed=lambda: 0.0,
        running=Running(),
        store=SimpleNamespace(nodes=SimpleNamespace(standing=0), deliveries=post),
        confirmations=post,
        notifier=told,
        channel_of=lambda _: None,
        capabilities_of=lambda _: Capabilities(),
        pacing=Pacing(lambda: 0.0),
        as_it_stands=lambda each: Parts.as_it_stands(cast(Parts, parts), each),
    )
    tried = Delivery(
        id=delivery.id,
        lane=delivery.lane,
        to=delivery.to,
        text=delivery.text,
        extra=delivery.extra,
        created_at=NOON,
        attempts=1,
    )
    lease = Lease(lane=tried.lane, node=1, token=1)
    sending = Sending(cast(Parts, parts), DeliveryClaim(delivery=tried, lease=lease), ask(cast(Parts, parts)))
    await Sender(cast(Parts, parts)).send(sending)


async def test_notice_that_failed_in_the_chat_is_no_matter_where_home_was_told(
    caplog: pytest.LogCaptureFixture,
) -> None:
    asked, homes = confirmation(), teller(SHOP)
    (notice,) = homes.in_chat(asking(SessionSource(platform=Platform.MATRIX, chat_id="ann")), asked)
    assert (notice.extra[CONFIRMATION], HOME in notice.extra) == (asked.id, False)
    post = Post(asked)
    with caplog.at_level(logging.WARNING, "frontdesk"):
        await fail(notice, homes, post)
    assert (post.added, "nobody_told" in caplog.text) == ([], False)


async def test_failed_home_asks_the_next_and_the_last_one_warns(caplog: pytest.LogCaptureFixture) -> None:
    asked, homes = confirmation(), teller(OFFICE, SHOP)
    post = Post(asked)
    (first,) = homes(asked)
    with caplog.at_level(logging.WARNING, "frontdesk"):
        await fail(first, homes, post)
        assert [each.to.chat_id for each in post.added] == ["office"]
        assert "nobody_told" not in caplog.text
        await fail(post.added[0], homes, post)
    assert "nobody_told" in caplog.text


async def test_chat_stands_in_where_there_is_no_home(caplog: pytest.LogCaptureFixture) -> None:
    asked, homes = confirmation(), teller()
    (notice,) = homes.in_chat(asking(SessionSource(platform=Platform.MATRIX, chat_id="ann")), asked)
    with caplog.at_level(logging.WARNING, "frontdesk"):
        await fail(notice, homes, Post(asked))
    assert "nobody_told" in caplog.text


@pytest.mark.parametrize("known", [(), (confirmation(status=Status.DENIED),)])
async def test_nobody_else_is_told_of_what_waits_no_more(
    known: tuple[Confirmation, ...], caplog: pytest.LogCaptureFixture
) -> None:
    homes, post = teller(OFFICE, SHOP), Post(*known)
    with caplog.at_level(logging.WARNING, "frontdesk"):
        await fail(homes(confirmation())[0], homes, post)
    assert (post.added, "nobody_told" in caplog.text) == ([], False)
