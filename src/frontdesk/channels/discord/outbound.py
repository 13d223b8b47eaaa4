"""What goes out: a delivery as messages of the platform."""

from contextlib import ExitStack
from hashlib import blake2b
from io import FileIO
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from frontdesk.channels.discord.verdicts import RestFailure, RestRefused, judge
from frontdesk.formats.markdown import chat_markdown
from frontdesk.model.chats import Button, ChatSign, StoredFile, TextUnit
from frontdesk.model.deliveries import Delivery, NotSent, Outcome, Sent, Unknown
from frontdesk.model.sources import ChatType, SessionSource, readable

if TYPE_CHECKING:
    from frontdesk.channels.discord.calls import RestCalls

MOST_UNITS = 2000
TEXT_UNITS = 1980
"""So that what must not be read as markup fits into a block of code."""
MOST_FILES = 10
MOST_FILE_BYTES = 10 * 1024 * 1024
MOST_REQUEST_BYTES = 24 * 1024 * 1024
BUTTONS_IN_A_ROW = 5
MOST_BUTTONS = 25
LABEL_CHARACTERS = 80
NO_PREVIEWS = 4
NOBODY = {"parse": [], "replied_user": False}
UNKNOWN_MESSAGE = 10008
SIGNS = {ChatSign.SEEN: "👀", ChatSign.WORKING: "⏳", ChatSign.DONE: "✅", ChatSign.FAILED: "❌"}
BEFORE = {
    ChatSign.WORKING: (ChatSign.SEEN,),
    ChatSign.DONE: (ChatSign.WORKING,),
    ChatSign.FAILED: (ChatSign.WORKING,),
}
"""The signs whose place another takes."""


def channel_of(to: SessionSource) -> str:
    """A thread is a channel."""
    return to.thread_id or to.chat_id


def is_id(text: object) -> bool:
    return isinstance(text, str) and text.isascii() and text.isdigit()


def shown(text: str, is_markdown: bool) -> str:
    """The text as it has to be written, so that people read what it says."""
    text = readable(text)
    if is_markdown:
        return chat_markdown.render(text, MOST_UNITS)
    plain = chat_markdown.CHAT_MARKDOWN
    escaped = plain.line_start(plain.text(text))
    if TextUnit.UTF16.fits(escaped, MOST_UNITS):
        return escaped
    block = plain.code_block(text, "")
    return block if TextUnit.UTF16.fits(block, MOST_UNITS) else text


def nonce(delivery_id: str, part: int) -> str:
    return blake2b(f"{delivery_id}:{part}".encode(), digest_size=12).hexdigest()


def rows(buttons: tuple[Button, ...]) -> list[dict[str, Any]]:
    made = [
        {
            "type": 2,
            "style": 2,
            "label": each.label[:LABEL_CHARACTERS].strip() or "·",
            "custom_id": each.token,
        }
        for each in buttons[:MOST_BUTTONS]
    ]
    starts = range(0, len(made), BUTTONS_IN_A_ROW)
    return [{"type": 1, "components": made[at : at + BUTTONS_IN_A_ROW]} for at in starts]


def batches(files: tuple[StoredFile, ...]) -> list[tuple[StoredFile, ...]]:
    """The files, as many together as one request may hold."""
    made: list[tuple[StoredFile, ...]] = []
    for file in files:
        last = made[-1] if made else ()
        size = sum(each.size for each in last) + file.size
        if not made or len(last) >= MOST_FILES or size > MOST_REQUEST_BYTES:
            made.append((file,))
        else:
            made[-1] = (*last, file)
    return made


async def send(calls: "RestCalls", delivery: Delivery) -> Outcome:
    """Take a delivery to its chat: in the place of a draft, if it has one that is still there."""
    channel = channel_of(delivery.to)
    text = shown(delivery.text, delivery.is_markdown)
    if not is_id(channel):
        return NotSent(why="the chat has no id of Discord's", hopeless=True)
    if not text.strip() and not delivery.files:
        return NotSent(why="there is nothing in it", hopeless=True)
    told: dict[str, Any] = {"content": text, "flags": NO_PREVIEWS, "allowed_mentions": NOBODY}
    told["components"] = rows(delivery.buttons)
    parts = batches(delivery.files)
    sent: Outcome | None = None
    try:
        if delivery.draft:
            sent = await _change(calls, channel, delivery.draft, told)
        else:
            first = parts.pop(0) if parts else ()
            sent = await _post(calls, channel, told | reply(delivery.to), nonce(delivery.id, 0), first)
        if isinstance(sent, Sent):
            for number, part in enumerate(parts, 1):
                alone = {"content": "", "allowed_mentions": NOBODY}
                await _post(calls, channel, alone, nonce(delivery.id, number), part)
    except RestFailure as error:
        if sent is None:
            return judge(error)
        return Unknown(why=f"the text arrived, its files may not have: {error}")
    except OSError as error:
        return NotSent(why=f"the file cannot be read: {error.strerror}", hopeless=True)
    return sent


async def _change(calls: "RestCalls", channel: str, message_id: str, told: dict[str, Any]) -> Outcome:
    if not is_id(message_id):
        return NotSent(why="the id of the message to change is none", hopeless=True)
    try:
        await calls.ask("PATCH", f"/channels/{channel}/messages/{message_id}", told)
    except RestRefused as error:
        if error.code == UNKNOWN_MESSAGE:
            return NotSent(why="the message to change is gone", gone=True)
        raise
    return Sent(message_id=message_id)


async def _post(
    calls: "RestCalls", channel: str, told: dict[str, Any], once: str, files: tuple[StoredFile, ...]
) -> Sent:
    """A new message. The same number within some minutes is the same message."""
    told = told | {"nonce": once, "enforce_nonce": True}
    with ExitStack() as opened:
        uploads = [(opened.enter_context(_open(each)), each.name, each.kind) for each in files]
        answer = await calls.ask("POST", f"/channels/{channel}/messages", told, uploads=uploads)
    number = answer.get("id") if isinstance(answer, dict) else None
    return Sent(message_id=number if isinstance(number, str) else None)


def _open(file: StoredFile) -> FileIO:
    if file.path is None:
        raise FileNotFoundError(2, "it is not here")
    return FileIO(file.path)


def reply(to: SessionSource) -> dict[str, Any]:
    """Among many, it is shown which message is answered."""
    if to.chat_type is ChatType.DM or not is_id(to.message_id):
        return {}
    return {"message_reference": {"message_id": to.message_id, "fail_if_not_exists": False}}


async def sign(calls: "RestCalls", to: SessionSource, put: ChatSign) -> Outcome:
    """Show that we write, or put a reaction to the message in the place of the one before."""
    channel = channel_of(to)
    if not is_id(channel) or (put is not ChatSign.TYPING and not is_id(to.message_id)):
        return NotSent(why="there is no message to put it to", hopeless=True)
    try:
        if put is ChatSign.TYPING:
            await calls.ask("POST", f"/channels/{channel}/typing")
            return Sent()
        at = f"/channels/{channel}/messages/{to.message_id}/reactions"
        await calls.ask("PUT", f"{at}/{quote(SIGNS[put])}/@me")
        for earlier in BEFORE.get(put, ()):
            await calls.ask("DELETE", f"{at}/{quote(SIGNS[earlier])}/@me")
    except RestFailure as error:
        return judge(error)
    return Sent()
