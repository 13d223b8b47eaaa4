"""An answer that grows as a stream of the platform's own, in threads of direct chats.

In a channel only one person would see a stream grow: there a message is changed, which all see. A stream is
only added to, for five minutes at most, and is a message like any other once it has ended. So what is more
than an addition, and the answer itself, ends the stream and changes the message.
"""

import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from frontdesk.channels.slack import inbound
from frontdesk.channels.slack.faults import SlackError, SlackRefusal, judge
from frontdesk.logs import get_logger
from frontdesk.model import deliveries
from frontdesk.model.deliveries import Delivery, DeliveryKind, Outcome, Sent
from frontdesk.model.sources import ChatType, SessionSource, readable

if TYPE_CHECKING:
    from frontdesk.channels.slack.calls import SlackLine

LIFE_SECONDS = 240.0
"""The platform ends a stream after some five minutes."""
LOST_SECONDS = 900.0
"""So old a stream may be that a process which died has left behind."""
MOST_STREAMS = 1000
OFF_SECONDS = 3600.0
UNFINISHED = ("in_progress", "errored")
STOPPED = "stopped_by_user"
OPEN = "streaming_state_conflict"
"""What is said of a change while the message is a stream."""

log = get_logger(__name__)


class _Shown(NamedTuple):
    text: str
    until: float


class AnswerStreams:
    """The streams of this process. One that it does not know of is ended by whoever changes its message."""

    def __init__(
        self, stop: Callable[[Delivery], Awaitable[None]], elapsed: Callable[[], float] = time.monotonic
    ) -> None:
        """``stop`` is called when somebody has used the stop button of the platform."""
        self._stop = stop
        self._elapsed = elapsed
        self._shown: dict[str, _Shown] = {}
        self._looked: set[tuple[str, str | None]] = set()
        self._off_until = 0.0

    async def show(self, line: "SlackLine", delivery: Delivery) -> Outcome | None:
        """Show an answer as far as it is written; None when its message is to be posted, or changed."""
        if delivery.draft is None:
            streams = _fits(delivery.to) and self._off_until <= self._elapsed()
            return await self._start(line, delivery) if streams else None
        shown, text = self._shown.get(delivery.draft), _written(delivery)
        if shown is None or not text.startswith(shown.text) or shown.until <= self._elapsed():
            return None
        return await self._append(line, delivery, shown, text) if text != shown.text else Sent()

    async def end(self, line: "SlackLine", delivery: Delivery) -> None:
        """End the stream, if there is one: its message is about to be changed."""
        if delivery.draft is not None and self._shown.pop(delivery.draft, None) is not None:
            try:
                await stop_stream(line, delivery)
            except SlackError as error:  # if it goes on, that is said when the message is changed
                log.info("stream_not_ended", delivery=delivery.id, why=error.why)

    async def found(self, line: "SlackLine", delivery: Delivery) -> Delivery:
        """The delivery, in the place of a stream whose process died before it could note it. Looked for once
        in each thread: what this process begins there, it knows."""
        place = (delivery.to.chat_id, delivery.to.thread_id)
        own = delivery.draft is not None or delivery.kind is DeliveryKind.NOTICE
        if own or not _fits(delivery.to) or place in self._looked:
            return delivery
        if len(self._looked) >= MOST_STREAMS:
            self._looked.clear()
        self._looked.add(place)
        try:
            stamp = await _left_behind(line, delivery.to)
        except SlackError as error:
            log.info("stream_not_ended", delivery=delivery.id, why=error.why)
            return delivery
        return replace(delivery, extra={**delivery.extra, deliveries.DRAFT: stamp}) if stamp else delivery

    async def _start(self, line: "SlackLine", delivery: Delivery) -> Outcome | None:
        to, text = delivery.to, _written(delivery)
        try:
            answer = await line.write(
                "chat.startStream", channel=to.chat_id, thread_ts=to.thread_id, markdown_text=text
            )
        except SlackRefusal as error:
            if error.wait is not None or error.token_refused:
                return judge(error)
            self._off_until = self._elapsed() + OFF_SECONDS
            log.info("streams_not_allowed", why=error.why)
            return None
        except SlackError as error:
            self._looked.discard((to.chat_id, to.thread_id))
            return judge(error)
        stamp = answer.get("ts")
        if not inbound.is_stamp(stamp):
            return Sent()
        if len(self._shown) >= MOST_STREAMS:
            self._shown.clear()
        self._shown[stamp] = _Shown(text, self._elapsed() + LIFE_SECONDS)
        return Sent(message_id=stamp)

    async def _append(
        self, line: "SlackLine", delivery: Delivery, shown: _Shown, text: str
    ) -> Outcome | None:
        stamp = delivery.draft or ""
        place = {"channel": delivery.to.chat_id, "ts": stamp}
        try:
            await line.write("chat.appendStream", markdown_text=text[len(shown.text) :], **place)
        except SlackRefusal as error:
            if error.wait is not None or error.token_refused:
                return judge(error)
            del self._shown[stamp]
            if error.code == STOPPED:
                await self._stop(delivery)
            return None
        except SlackError as error:
            del self._shown[stamp]  # nobody knows what it shows by now
            return judge(error)
        self._shown[stamp] = shown._replace(text=text)
        return Sent(message_id=stamp)


async def stop_stream(line: "SlackLine", delivery: Delivery) -> None:
    """SlackError where it may still go on."""
    try:
        await line.write("chat.stopStream", channel=delivery.to.chat_id, ts=delivery.draft)
    except SlackRefusal as error:
        if error.wait is not None or error.token_refused:
            raise
        log.info("stream_not_ended", delivery=delivery.id, why=error.why)


async def _left_behind(line: "SlackLine", to: SessionSource) -> str | None:
    """A message of ours that is still a stream, or that the platform has given up as one."""
    place = {"channel": to.chat_id, "ts": to.thread_id, "oldest": f"{line.now() - LOST_SECONDS:.6f}"}
    listed = (await line.call("conversations.replies", limit="200", **place)).get("messages")
    for each in reversed(listed) if isinstance(listed, list) else ():
        message = inbound.table(each)
        stamp = message.get("ts")
        if message.get("bot_id") and message.get("streaming_state") in UNFINISHED and inbound.is_stamp(stamp):
            return stamp
    return None


def _fits(to: SessionSource) -> bool:
    return to.chat_type is ChatType.DM and to.thread_id is not None


def _written(delivery: Delivery) -> str:
    """The text as a stream takes it, character by character the same as it grows. Nobody is called by it."""
    return readable(delivery.text).replace("<", "&lt;")
