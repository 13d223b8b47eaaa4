"""What goes out: an answer as a message, changed in its place while it grows, with buttons and files."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import msgspec

from frontdesk.channels.slack import inbound, streaming, texts
from frontdesk.channels.slack.faults import SlackError, SlackRefusal, judge
from frontdesk.formats.markdown import mrkdwn, plaintext
from frontdesk.model.chats import Button, ChatSign, StoredFile
from frontdesk.model.deliveries import Delivery, NotSent, Outcome, Sent, Unknown
from frontdesk.model.sources import SessionSource, readable

if TYPE_CHECKING:
    from frontdesk.channels.slack.calls import SlackLine

TEXT_CHARACTERS = 3500
MARKED_CHARACTERS = 4000
"""What a text may have with its marks; a message that is changed takes no more."""
SECTION_CHARACTERS = 3000
MOST_BUTTONS = 25
BUTTON_CHARACTERS = 75
MOST_FILES = 10
MOST_FILE_BYTES = 100_000_000
EVENT_TYPE = "frontdesk_delivery"
LOOK_BACK_SECONDS = 120
PAGE = 100
MOST_PAGES = 10
GONE = ("message_not_found", "cant_update_message", "edit_window_closed")
NO_THREAD = ("thread_not_found", "cannot_reply_to_message")
AS_IT_IS = ("already_reacted", "no_reaction")
NOT_THERE = ("not_in_channel", "channel_not_found")
SIGNS = {
    ChatSign.SEEN: "eyes",
    ChatSign.WORKING: "hourglass_flowing_sand",
    ChatSign.DONE: "white_check_mark",
    ChatSign.FAILED: "x",
}
BEFORE = {
    ChatSign.WORKING: ChatSign.SEEN,
    ChatSign.DONE: ChatSign.WORKING,
    ChatSign.FAILED: ChatSign.WORKING,
}
"""The sign whose place another takes."""
STATUS = "is writing…"
FILES_UNSURE = "the text arrived, its files may not have"


async def send(line: "SlackLine", delivery: Delivery) -> Outcome:
    """Files are brought first, where nobody sees them: what goes wrong with one leaves nothing behind."""
    try:
        brought = [await _bring(line, file) for file in delivery.files]
    except OSError as error:
        return NotSent(why=f"the file cannot be read: {error.strerror}", hopeless=True)
    except SlackError as error:
        verdict = judge(error)
        return verdict if isinstance(verdict, NotSent) else NotSent(why=verdict.why)
    if not delivery.text and delivery.files:
        return await _share(line, delivery.to, brought)
    told = await (_change if delivery.draft else _post)(line, delivery)
    if not brought or not isinstance(told, Sent):
        return told
    shared = await _share(line, delivery.to, brought)
    return told if isinstance(shared, Sent) else Unknown(why=f"{FILES_UNSURE}: {shared.why}", hopeless=True)


async def find(line: "SlackLine", delivery: Delivery) -> Outcome:
    """Look for a message of ours that has the delivery's id."""
    if delivery.files:
        return Unknown(why="files cannot be looked for", hopeless=True)
    to, oldest = delivery.to, delivery.created_at.timestamp() - LOOK_BACK_SECONDS
    place = {"channel": to.chat_id, "oldest": f"{oldest:.6f}", "include_all_metadata": "true"}
    method = "conversations.replies" if to.thread_id else "conversations.history"
    page: str | None = None
    try:
        for _ in range(MOST_PAGES):
            answer = await line.call(method, ts=to.thread_id, limit=str(PAGE), cursor=page, **place)
            listed = answer.get("messages")
            for message in listed if isinstance(listed, list) else ():
                if _brought(inbound.table(message)) == delivery.brought_by:
                    return Sent(message_id=str(message.get("ts")))
            page = inbound.table(answer.get("response_metadata")).get("next_cursor")
            if not page:
                return NotSent(why="the message is not in the chat")
    except SlackError as error:
        hopeless = isinstance(error, SlackRefusal) and error.wait is None and not error.token_refused
        return Unknown(why=error.why, hopeless=hopeless)
    return Unknown(why="too much was said since then to look through", hopeless=True)


async def sign(line: "SlackLine", to: SessionSource, shown: ChatSign) -> Outcome:
    """Show that we write, or put a reaction to the message in the place of the one before."""
    try:
        if shown is ChatSign.TYPING and to.thread_id:
            place = {"channel_id": to.chat_id, "thread_ts": to.thread_id}
            await line.write("assistant.threads.setStatus", status=STATUS, **place)
        elif shown is not ChatSign.TYPING and to.message_id:
            if earlier := BEFORE.get(shown):
                await _react(line, "reactions.remove", to, earlier)
            await _react(line, "reactions.add", to, shown)
        else:
            return NotSent(why="there is nothing to put it to", hopeless=True)
    except SlackRefusal as error:
        verdict = judge(error)
        return msgspec.structs.replace(verdict, hopeless=error.wait is None and not error.token_refused)
    except SlackError as error:
        return judge(error)
    return Sent()


async def _react(line: "SlackLine", method: str, to: SessionSource, shown: ChatSign) -> None:
    try:
        await line.write(method, channel=to.chat_id, timestamp=to.message_id, name=SIGNS[shown])
    except SlackRefusal as error:
        if error.code not in AS_IT_IS:
            raise


def written(delivery: Delivery) -> dict[str, Any]:
    """The text, and the blocks that show it. What is not Markdown stands in a block in which nothing has a
    meaning; the text is then what notifications show."""
    text, limit = readable(delivery.text), SECTION_CHARACTERS if delivery.buttons else MARKED_CHARACTERS
    marked = mrkdwn.render(text, limit) if delivery.is_markdown else None
    if marked is not None and len(marked) <= limit:
        section = {"type": "section", "text": {"type": "mrkdwn", "text": marked}}
        blocks = [section, *_actions(delivery.buttons)] if delivery.buttons else []
        return {"text": marked, "blocks": blocks}
    plain = plaintext.render(text) if delivery.is_markdown else text
    said = {"type": "rich_text_section", "elements": [{"type": "text", "text": plain or "\u00a0"}]}
    rich = {"type": "rich_text", "elements": [said]}
    short = texts.escaped(plain[:SECTION_CHARACTERS])[:SECTION_CHARACTERS]
    return {"text": short or "\u00a0", "blocks": [rich, *_actions(delivery.buttons)]}


def _actions(buttons: tuple[Button, ...]) -> list[dict[str, Any]]:
    if not buttons:
        return []
    elements = [
        {
            "type": "button",
            "action_id": f"press-{number}",
            "text": {"type": "plain_text", "text": each.label[:BUTTON_CHARACTERS].strip() or "·"},
            "value": each.token,
        }
        for number, each in enumerate(buttons[:MOST_BUTTONS])
    ]
    return [{"type": "actions", "elements": elements}]


def _brought(message: inbound.Table) -> str | None:
    """The delivery that brought a message. The platform gives what we noted to us alone."""
    noted = inbound.table(message.get("metadata"))
    named = inbound.table(noted.get("event_payload")).get("id")
    return named if noted.get("event_type") == EVENT_TYPE and isinstance(named, str) else None


async def _post(line: "SlackLine", delivery: Delivery) -> Outcome:
    to = delivery.to
    told: dict[str, Any] = {
        "channel": to.chat_id,
        "thread_ts": to.thread_id,
        **_noted(delivery),
        "unfurl_links": False,
        "unfurl_media": False,
        **written(delivery),
    }
    while True:
        try:
            answer = await line.write("chat.postMessage", **told)
        except SlackRefusal as error:
            if error.code in NO_THREAD and told["thread_ts"]:
                told["thread_ts"] = None
                continue
            if error.code in NOT_THERE and (url := _answer_address(delivery)):
                return await _answer_at(line, url, delivery)
            return judge(error)
        except SlackError as error:
            return judge(error)
        stamp = answer.get("ts")
        return Sent(message_id=stamp if isinstance(stamp, str) else None)


def _answer_address(delivery: Delivery) -> str | None:
    """Where a command is answered in a channel that we are not in, as long as that works."""
    handle = delivery.handle
    if handle is None or (handle.expires_at and handle.expires_at <= datetime.now(UTC)):
        return None
    return handle.value


async def _answer_at(line: "SlackLine", url: str, delivery: Delivery) -> Outcome:
    """Only whoever gave the command sees it."""
    try:
        await line.answer_at(url, {"response_type": "ephemeral", **written(delivery)})
    except SlackError as error:
        return judge(error)
    return Sent()


async def _change(line: "SlackLine", delivery: Delivery) -> Outcome:
    """Without blocks a message would keep those that it has."""
    place = {"channel": delivery.to.chat_id, "ts": delivery.draft}
    try:
        try:
            await line.write("chat.update", **place, **_noted(delivery), **written(delivery))
        except SlackRefusal as error:
            if error.code != streaming.OPEN:
                raise
            await streaming.stop_stream(line, delivery)
            await line.write("chat.update", **place, **_noted(delivery), **written(delivery))
    except SlackRefusal as error:
        if error.code in GONE:
            return NotSent(why="the message to change is gone", gone=True)
        if error.code == streaming.OPEN:
            return NotSent(why=error.why)
        return judge(error)
    except SlackError as error:
        return judge(error)
    return Sent(message_id=delivery.draft)


def _noted(delivery: Delivery) -> dict[str, Any]:
    """What we note with a message, for us alone."""
    return {"metadata": {"event_type": EVENT_TYPE, "event_payload": {"id": delivery.id}}}


async def _bring(line: "SlackLine", file: StoredFile) -> dict[str, str]:
    if file.path is None:
        raise FileNotFoundError(2, "it is not here")
    place = await line.call("files.getUploadURLExternal", filename=readable(file.name), length=str(file.size))
    await line.upload(place.get("upload_url"), file.path)
    return {"id": str(place.get("file_id")), "title": readable(file.name)}


async def _share(line: "SlackLine", to: SessionSource, files: list[dict[str, str]]) -> Outcome:
    try:
        await line.write(
            "files.completeUploadExternal", files=files, channel_id=to.chat_id, thread_ts=to.thread_id
        )
    except SlackError as error:
        return judge(error)
    return Sent()


def without_extras(delivery: Delivery) -> Delivery:
    """An answer that is still being written, as text alone."""
    return msgspec.structs.replace(delivery, buttons=(), files=())
