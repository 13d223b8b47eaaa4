"""The webhook channel over real HTTP on loopback, with real receivers of its callbacks."""

import asyncio
import json
import logging
import re
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import httpx
import pytest
import standardwebhooks

from frontdesk import errors
from frontdesk.channels import webhook
from frontdesk.formats import webhooks
from frontdesk.model import deliveries
from frontdesk.model.platforms import Platform
from frontdesk.model.sources import SessionSource
from frontdesk.testing.channels import RecordingDesk
from tests import loopback

SECRET = "whsec_c2l4dGVlbiBieXRlcyBvciBtb3JlIG9mIGl0"
OLD_SECRET = "whsec_b2xkIHNlY3JldCBvZiBzaXh0ZWVuIGJ5dGVz"
MESSAGE = {"id": "event-1", "chat_id": "chat-1", "user_id": "user-1", "text": "Hello"}
NOBODY = "http://127.0.0.1:9/answers"
IN_TWO_HOURS = "in two hours"
SECONDS = re.compile(r"\d+ seconds")


def options(url: str = NOBODY, **more: Any) -> webhook.Options:
    return webhook.Options(**{"callback_url": url, "secrets": (lambda: SECRET,), **more})


def missing() -> str:
    raise errors.MissingSecret(where="the environment", setting="secrets")


class Endpoint:
    """What a service that uses the webhook does."""

    def __init__(self, url: str) -> None:
        self.url = url

    async def post(self, body: bytes | None = None, **changes: Any) -> httpx.Response:
        content = json.dumps(MESSAGE).encode() if body is None else body
        headers = (
            signed(content, changes.pop("secret", SECRET), time.time() + changes.pop("shift", 0)) | changes
        )
        async with httpx.AsyncClient(trust_env=False) as client:
            return await client.post(self.url, content=content, headers=headers)


def signed(body: bytes, secret: str, at: float) -> dict[str, str]:
    return webhooks.signed_headers(secret, "msg_1", datetime.fromtimestamp(at, UTC), body)


@asynccontextmanager
async def endpoint(desk: RecordingDesk, **more: Any) -> AsyncIterator[Endpoint]:
    channel = webhook.Channel(options(**more), "billing")
    async with loopback.receiving(channel, desk) as url:
        yield Endpoint(f"{url}/channels/webhook/billing")


async def test_stored_message_is_confirmed_with_its_turn_and_key() -> None:
    async with endpoint(RecordingDesk()) as service:
        answer = await service.post()
    assert answer.status_code == 202
    key = "agent:main:webhook@billing:dm:chat-1"
    assert answer.json() == {"turn_id": "turn-1", "session_key": key, "status": "accepted"}


async def test_repeated_message_is_confirmed_as_such() -> None:
    desk = RecordingDesk()
    async with endpoint(desk) as service:
        first, second = await service.post(), await service.post()
    assert (second.status_code, second.json()["status"]) == (200, "repeated")
    assert second.json()["turn_id"] == first.json()["turn_id"]
    assert len(desk.stored) == 1


async def test_message_without_an_id_is_known_again_by_that_of_its_signature() -> None:
    desk = RecordingDesk()
    body = json.dumps({"chat_id": 1, "text": "Hello"}).encode()
    async with endpoint(desk) as service:
        assert [(await service.post(body)).status_code for _ in range(2)] == [202, 200]
    assert desk.stored[0].event_id == "msg_1"


@pytest.mark.parametrize(
    "changes",
    [
        {"secret": OLD_SECRET},
        {"shift": -3600},
        {"shift": 3600},
        {"webhook-signature": "v1,AAAA"},
        {"webhook-signature": ""},
        {"webhook-id": "msg_2"},
        {"webhook-timestamp": "soon"},
    ],
)
async def test_nothing_is_read_without_a_good_signature(changes: dict[str, Any]) -> None:
    desk = RecordingDesk()
    async with endpoint(desk) as service:
        answer = await service.post(**changes)
        broken = await service.post(b"{not JSON", **changes)
    assert answer.status_code == broken.status_code == 401
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["status"] == 401
    assert SECONDS.sub("", answer.json()["detail"]) == SECONDS.sub("", broken.json()["detail"])
    assert not desk.offered


async def test_every_secret_is_good_while_they_are_changed() -> None:
    secrets = (lambda: SECRET, missing, lambda: OLD_SECRET)
    async with endpoint(RecordingDesk(), secrets=secrets) as service:
        assert (await service.post()).status_code == 202
        assert (await service.post(secret=OLD_SECRET)).status_code == 200


async def test_changed_secret_counts_from_the_next_message_on() -> None:
    current = [OLD_SECRET]
    async with endpoint(RecordingDesk(), secrets=(lambda: current[0],)) as service:
        assert (await service.post()).status_code == 401
        current[0] = SECRET
        assert (await service.post()).status_code == 202


@pytest.mark.parametrize("secret", [missing, lambda: "short"])
async def test_without_a_usable_secret_the_sender_is_asked_to_come_again(secret: Callable[[], str]) -> None:
    async with endpoint(RecordingDesk(), secrets=(secret,)) as service:
        answer = await service.post()
    assert answer.status_code == 503
    assert int(answer.headers["retry-after"]) > 0


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        (b"{not JSON", 400, "JSON"),
        (b'{"chat_id": "1"}', 400, "text"),
        (b'{"text": "a", "chat_type": "party"}', 400, "chat_type"),
        (b'{"text": "a", "chat_id": "1", "in_reply_to": null}', 400, "in_reply_to"),
        (b'{"text": "abcdef", "chat_id": "1"}', 422, "longer than 5"),
        (b'{"text": "a"}', 422, "no chat"),
    ],
)
async def test_unusable_message_is_refused_with_its_reason(body: bytes, status: int, said: str) -> None:
    async with endpoint(RecordingDesk(), max_text_characters=5) as service:
        answer = await service.post(body)
    assert answer.status_code == answer.json()["status"] == status
    assert said in answer.json()["detail"]


async def test_body_over_the_limit_is_refused_by_the_server() -> None:
    async with endpoint(RecordingDesk(), max_body_bytes=100) as service:
        assert (await service.post(b" " * 101)).status_code == 413


@pytest.mark.parametrize(
    ("refusal", "status"),
    [
        (errors.NotAllowed(who="Ada", rule="not on the list"), 403),
        (errors.UnsafeKey(key="x", why="too long"), 422),
        (errors.TooManyWaiting(waiting=100), 429),
        (errors.StoreFull(path="state.db"), 503),
        (errors.StoreUnavailable(path="state.db", why="gone"), 503),
    ],
)
async def test_refusal_of_the_desk_is_told(refusal: errors.FrontdeskError, status: int) -> None:
    desk = RecordingDesk()
    desk.refusal = refusal
    async with endpoint(desk) as service:
        answer = await service.post()
    assert answer.status_code == status
    assert ("retry-after" in answer.headers) == (status in (429, 503))
    assert "state.db" not in answer.text


async def test_channel_that_does_not_receive_yet_asks_to_come_again() -> None:
    channel = webhook.Channel(options(), "billing")
    async with loopback.served(channel.routes) as url:
        assert (await Endpoint(f"{url}/channels/webhook/billing").post()).status_code == 503


async def test_own_answer_sent_back_is_not_a_message() -> None:
    desk = RecordingDesk()
    channel: webhook.Channel
    async with loopback.receiver() as receiver:
        channel = webhook.Channel(options(receiver.url), "billing")
        async with loopback.receiving(channel, desk) as url:
            await channel.send(delivery())
            (sent,) = receiver.received
            async with httpx.AsyncClient(trust_env=False) as client:
                kept = {
                    name: sent.headers[name] for name in (webhooks.ID, webhooks.TIMESTAMP, webhooks.SIGNATURE)
                }
                answer = await client.post(f"{url}/channels/webhook/billing", content=sent.body, headers=kept)
    assert answer.status_code == 400
    assert not desk.offered


async def test_secrets_are_never_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    desk = RecordingDesk()
    async with endpoint(desk, secrets=(lambda: SECRET, lambda: "short-secret")) as service:
        await service.post()
        await service.post(secret=OLD_SECRET)
        desk.refusal = errors.StoreFull(path="x")
        await service.post()
    logged = caplog.text
    assert "webhook_refused" in logged
    assert "webhook_secret_unusable" in logged
    assert "webhook_not_stored" in logged
    assert not any(secret in logged for secret in (SECRET, SECRET[6:], OLD_SECRET, "short-secret"))


def delivery(text: str = "Grüße", **more: Any) -> deliveries.Delivery:
    source = SessionSource(platform=Platform.WEBHOOK, account="billing", chat_id="chat-1", thread_id="t")
    return deliveries.Delivery(
        id="delivery-1",
        lane="chat",
        to=source,
        text=text,
        event_id="event-1",
        session_id="session-1",
        created_at=datetime.now(UTC),
        **more,
    )


@asynccontextmanager
async def callbacks(url: str, **more: Any) -> AsyncIterator[webhook.Channel]:
    channel = webhook.Channel(options(url, **more), "billing")
    try:
        yield channel
    finally:
        await channel.close()


async def test_answer_is_signed_and_the_official_library_takes_it() -> None:
    async with loopback.receiver() as receiver, callbacks(receiver.url) as channel:
        assert await channel.send(delivery()) == deliveries.Sent()
    (received,) = receiver.received
    assert received.headers["webhook-id"] == "delivery-1"
    assert received.headers["content-length"] == str(len(received.body))
    assert "transfer-encoding" not in received.headers
    assert standardwebhooks.Webhook(SECRET).verify(received.body, received.headers) == {
        "in_reply_to": "event-1",
        "chat_id": "chat-1",
        "thread_id": "t",
        "session_id": "session-1",
        "text": "Grüße",
        "kind": "reply",
        "final": True,
    }


@pytest.mark.parametrize("status", [200, 201, 202, 204, 299, 409])
async def test_receiver_that_has_the_answer_ends_the_delivery(status: int) -> None:
    async with loopback.receiver() as receiver, callbacks(receiver.url) as channel:
        receiver.status = status
        assert await channel.send(delivery()) == deliveries.Sent()


@pytest.mark.parametrize("status", [300, 302, 307, 408, 425, 429, 500, 502, 503, 599])
async def test_receiver_that_may_take_it_later_is_tried_again(status: int) -> None:
    async with loopback.receiver() as receiver, callbacks(receiver.url) as channel:
        receiver.status = status
        receiver.headers = {"location": f"{receiver.url}/elsewhere"}
        outcome = await channel.send(delivery())
    assert isinstance(outcome, deliveries.NotSent)
    assert (outcome.hopeless, outcome.retry_after_seconds) == (False, None)
    assert str(status) in outcome.why
    assert len(receiver.received) == 1


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 413, 422])
async def test_receiver_that_refuses_is_not_tried_again(status: int) -> None:
    async with loopback.receiver() as receiver, callbacks(receiver.url) as channel:
        receiver.status = status
        outcome = await channel.send(delivery())
    assert isinstance(outcome, deliveries.NotSent)
    assert outcome.hopeless


@pytest.mark.parametrize(
    ("header", "low", "high"),
    [
        ("7", 7, 7),
        ("999999999", 86400, 86400),
        (IN_TWO_HOURS, 7000, 7200),
        ("Mon, 05 Jan 2015 12:00:00 GMT", 0, 0),
    ],
)
@pytest.mark.parametrize("status", [429, 503])
async def test_receiver_says_when_to_come_again(status: int, header: str, low: int, high: int) -> None:
    async with loopback.receiver() as receiver, callbacks(receiver.url) as channel:
        if header == IN_TWO_HOURS:
            header = format_datetime(datetime.now(UTC) + timedelta(hours=2), usegmt=True)
        receiver.status, receiver.headers = status, {"retry-after": header}
        outcome = await channel.send(delivery())
    assert isinstance(outcome, deliveries.NotSent)
    assert low <= (outcome.retry_after_seconds or 0) <= high


@pytest.mark.parametrize("header", ["soon", "-1", "1.5", "Fri, 31 Dec 9999 23:59:59 -2300", ""])
async def test_unreadable_wait_is_passed_over(header: str) -> None:
    async with loopback.receiver() as receiver, callbacks(receiver.url) as channel:
        receiver.status, receiver.headers = 503, {"retry-after": header}
        outcome = await channel.send(delivery())
    assert isinstance(outcome, deliveries.NotSent)
    assert outcome.retry_after_seconds is None


async def test_long_answer_of_the_receiver_is_not_read_to_its_end() -> None:
    async with loopback.receiver() as receiver, callbacks(receiver.url) as channel:
        receiver.body = b"x" * 10_000_000
        assert await channel.send(delivery()) == deliveries.Sent()


async def test_receiver_that_breaks_off_its_answer_has_ours() -> None:
    async with loopback.receiver() as receiver, callbacks(receiver.url) as channel:
        receiver.body, receiver.cuts_body = b"x", True
        assert await channel.send(delivery()) == deliveries.Sent()


@pytest.mark.parametrize("idempotent", [True, False])
async def test_receiver_that_falls_silent_leaves_the_outcome_unknown(idempotent: bool) -> None:
    async with (
        loopback.receiver() as receiver,
        callbacks(receiver.url, timeout_seconds=2, idempotent=idempotent) as channel,
    ):
        receiver.hangs = True
        assert isinstance(await channel.send(delivery()), deliveries.Unknown)
        receiver.hangs, receiver.cuts = False, True
        assert isinstance(await channel.send(delivery()), deliveries.Unknown)
        assert bool(channel.capabilities.idempotent_seconds) is idempotent


async def test_receiver_that_does_not_listen_has_nothing() -> None:
    async with loopback.receiver() as receiver, callbacks(receiver.url) as channel:
        await receiver.refuse()
        outcome = await channel.send(delivery())
    assert isinstance(outcome, deliveries.NotSent)
    assert not outcome.hopeless


async def test_receiver_without_a_name_or_without_tls_has_nothing() -> None:
    async with callbacks("https://nobody.invalid/answers", timeout_seconds=5) as channel:
        assert isinstance(await channel.send(delivery()), deliveries.NotSent)
    async with loopback.receiver() as receiver:
        url = receiver.url.replace("http:", "https:")
        # A third of it is for the handshake: httpcore closes what takes longer, but not what is cut off from
        # outside in its midst, as the time for the whole would on a busy machine.
        async with callbacks(url, timeout_seconds=3) as channel:
            assert isinstance(await channel.send(delivery()), deliveries.NotSent)
    assert not receiver.received


async def test_answer_waits_while_the_secret_is_missing() -> None:
    async with callbacks(NOBODY, secrets=(missing, lambda: OLD_SECRET)) as channel:
        outcome = await channel.send(delivery())
    assert isinstance(outcome, deliveries.NotSent)
    assert not outcome.hopeless


async def test_many_answers_at_once_all_arrive() -> None:
    async with loopback.receiver() as receiver, callbacks(receiver.url) as channel:
        outcomes = await asyncio.gather(*(channel.send(delivery(str(number))) for number in range(50)))
    assert outcomes == [deliveries.Sent()] * 50
    assert {json.loads(each.body)["text"] for each in receiver.received} == {str(n) for n in range(50)}


@pytest.mark.parametrize(
    "url",
    [
        "",
        "answers",
        "ftp://example.com/",
        "file:///etc/passwd",
        "https://",
        "https://[::1/",
        "https://example.com:port/",
        "http://example.com/answers",
        "http://127.0.0.1.example.com/",
        "http://10.0.0.1/",
        "https://user:password@example.com/",
    ],
)
def test_unsafe_callback_address_is_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(errors.InvalidSetting) as refused:
        options(url)
    assert "password" not in str(refused.value)


@pytest.mark.parametrize(
    "url", ["https://example.com/a", "http://localhost:1/a", "http://127.0.0.2/", "http://[::1]:5/"]
)
def test_safe_callback_address_is_taken(url: str) -> None:
    assert options(url).callback_url == url


def test_plain_http_to_another_machine_needs_permission() -> None:
    url = "http://example.com/a"
    assert options(url, allow_insecure=True).callback_url == url


@pytest.mark.parametrize("changes", [{"secrets": ()}, {"timeout_seconds": 0}, {"max_text_characters": -1}])
def test_senseless_options_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(errors.InvalidSetting):
        options(**changes)


@pytest.mark.parametrize("name", ["", "a/b", "a b", "é", "{x}", "x" * 65])
def test_name_that_cannot_stand_in_an_address_is_refused(name: str) -> None:
    with pytest.raises(errors.InvalidSetting):
        webhook.Channel(options(), name)
