"""Whether a message arrived of which nobody knows.

The number that it was sent with is not in the history. So it is known again by its buttons, or by its text
together with the message that it answers; a text alone is no proof.
"""

from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING, Any

from frontdesk.channels.discord.outbound import channel_of, is_id, reply, shown
from frontdesk.channels.discord.places import snowflake_at
from frontdesk.channels.discord.verdicts import RestFailure, RestRefused, RestUnclear
from frontdesk.model.deliveries import Delivery, NotSent, Outcome, Sent, Unknown

if TYPE_CHECKING:
    from frontdesk.channels.discord.calls import RestCalls

PAGE = 100
MOST_PAGES = 10
LOOK_BACK_SECONDS = 3600.0
"""The platform's clock may be another than ours."""


async def find(calls: "RestCalls", delivery: Delivery) -> Outcome:
    """Sent and NotSent are certain; Unknown where two readings are left."""
    channel = channel_of(delivery.to)
    if delivery.files or delivery.brought_by != delivery.id or not is_id(channel):
        return Unknown(why="it cannot be looked for", hopeless=True)
    try:
        return await _look(calls, channel, delivery)
    except _TooMuch:
        return Unknown(why="too much was said since then to look through", hopeless=True)
    except RestRefused as error:
        return Unknown(why=str(error), retry_after_seconds=error.wait, hopeless=error.is_for_good)
    except RestFailure as error:
        return Unknown(why=str(error))


async def _look(calls: "RestCalls", channel: str, delivery: Delivery) -> Outcome:
    me = _told(await calls.ask("GET", "/users/@me"))
    given, alike = False, False
    async for message in _since(calls, channel, _beginning(delivery)):
        given = True
        if _told(message.get("author")).get("id") != me.get("id"):
            continue
        if _is_it(message, delivery):
            return Sent(message_id=str(message.get("id")))
        alike = alike or _is_alike(message, delivery)
    # To whom may not read the history, nothing is given, and nothing is said.
    if not given and not await calls.ask("GET", f"/channels/{channel}/messages", query={"limit": "1"}):
        return Unknown(why="the bot may not read the chat's history, or it is empty", hopeless=True)
    if alike:
        return Unknown(why="the same text is in the chat, which may be another answer", hopeless=True)
    return NotSent(why="the message is not in the chat")


class _TooMuch(Exception):
    """More was said than is looked through."""


def _beginning(delivery: Delivery) -> int:
    """The id that it is surely later than: an answer comes after what it answers."""
    asked = delivery.to.message_id
    if asked and is_id(asked):
        return int(asked)
    return snowflake_at(delivery.created_at.timestamp() - LOOK_BACK_SECONDS)


async def _since(calls: "RestCalls", channel: str, after: int) -> AsyncIterator[Mapping[str, Any]]:
    for _ in range(MOST_PAGES):
        query = {"after": str(after), "limit": str(PAGE)}
        page = await calls.ask("GET", f"/channels/{channel}/messages", query=query)
        if not isinstance(page, list) or not all(is_id(_told(each).get("id")) for each in page):
            raise RestUnclear("the answer is no list of messages")
        for message in page:
            yield message
            after = max(after, int(message["id"]))
        if len(page) < PAGE:
            return
    raise _TooMuch


def _is_it(message: Mapping[str, Any], delivery: Delivery) -> bool:
    if delivery.buttons:
        return _tokens(message) == [each.token for each in delivery.buttons]
    wanted = reply(delivery.to).get("message_reference")
    answered = _told(message.get("message_reference")).get("message_id")
    return wanted is not None and answered == wanted["message_id"] and _is_alike(message, delivery)


def _is_alike(message: Mapping[str, Any], delivery: Delivery) -> bool:
    """The platform takes spaces away, and perhaps more."""
    return _letters(message.get("content")) == _letters(shown(delivery.text, delivery.is_markdown))


def _letters(text: object) -> str:
    said = text if isinstance(text, str) else ""
    return "".join(filter(str.isalnum, said)) or "".join(said.split())


def _tokens(message: Mapping[str, Any]) -> list[object]:
    rows = message.get("components")
    listed = [_told(row).get("components") for row in rows] if isinstance(rows, list) else []
    return [_told(each).get("custom_id") for row in listed if isinstance(row, list) for each in row]


def _told(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
