"""What a channel hands in, before it is stored: refused where it could not be kept as it is."""

from collections.abc import Sequence

from msgspec.structs import replace

from frontdesk import errors
from frontdesk.contracts.channels import Incoming
from frontdesk.flow import exhibits
from frontdesk.model import messages
from frontdesk.model.chats import TOKEN_CHARACTERS, Attachment, Quote

MAX_TEXT_CHARACTERS = 1_000_000
MAX_EVENT_ID_CHARACTERS = 500
MOST_ATTACHMENTS = 100
MAX_ATTACHMENT_CHARACTERS = 4_000
MAX_ID_CHARACTERS = 800
MAX_QUOTED_CHARACTERS = 4_000
MAX_HANDLE_CHARACTERS = 10_000


def check_message(incoming: Incoming) -> None:
    """Refuse what could not be kept as it is."""
    if not incoming.text.strip() and not incoming.content and not incoming.files:
        raise errors.InvalidMessage(why="it is empty")
    check_text(incoming.text)
    if incoming.content:
        messages.pack({"role": "user", "content": incoming.content})
    for each in incoming.history:
        messages.pack(each)
    if (incoming.content or incoming.history) and _poses(incoming):
        raise errors.InvalidMessage(why=f"only frontdesk itself writes parts of the type {exhibits.PART}")
    if incoming.instructions is not None:
        check_text(incoming.instructions)
    if incoming.noted:
        messages.pack({"role": "user", "content": [incoming.noted]})
    if incoming.files:
        _check_files(incoming.files)
    if incoming.quote or incoming.handle or incoming.album is not None or incoming.sent_at:
        _check_extras(incoming)


def _check_extras(incoming: Incoming) -> None:
    quote, handle = incoming.quote, incoming.handle
    for name, text, most in (
        ("the id of what it answers", quote and quote.message_id, MAX_ID_CHARACTERS),
        ("its handle", handle and handle.value, MAX_HANDLE_CHARACTERS),
        ("its album", incoming.album, MAX_ID_CHARACTERS),
    ):
        if text and len(text) > most:
            raise errors.InvalidMessage(why=f"{name} is longer than {most} characters")
        messages.pack({"role": "user", "content": text or ""})
    messages.pack({"role": "user", "content": (quote and quote.text) or ""})
    for moment in (incoming.sent_at, handle and handle.expires_at):
        if moment and moment.tzinfo is None:
            raise errors.InvalidMessage(why="a time in it has no zone")


def _poses(incoming: Incoming) -> bool:
    """Whether something in it poses as a file of ours, which may be anybody's."""
    brought = (each.get("content") for each in incoming.history)
    return any(map(exhibits.brings_ours, (incoming.content, *brought)))


def _check_files(files: Sequence[Attachment]) -> None:
    if len(files) > MOST_ATTACHMENTS:
        raise errors.InvalidMessage(why=f"it brings more than {MOST_ATTACHMENTS} files")
    for each in files:
        said = f"{each.id}{each.name or ''}{each.kind}"
        if len(said) > MAX_ATTACHMENT_CHARACTERS:
            raise errors.InvalidMessage(why=f"what names a file is longer than {MAX_ATTACHMENT_CHARACTERS}")
        messages.pack({"role": "user", "content": said})


def check_text(text: str) -> None:
    if len(text) > MAX_TEXT_CHARACTERS:
        raise errors.InvalidMessage(why=f"it is longer than {MAX_TEXT_CHARACTERS} characters")
    if not text.isascii():
        messages.pack({"role": "user", "content": text})


def check_token(token: str) -> None:
    if not 0 < len(token) <= TOKEN_CHARACTERS or not token.isascii() or not token.isprintable():
        raise errors.InvalidMessage(why="it presses a button that is none of ours")


def shortened(quote: Quote) -> Quote:
    """What is kept of a message that another one answers."""
    if quote.text is None or len(quote.text) <= MAX_QUOTED_CHARACTERS:
        return quote
    return replace(quote, text=quote.text[:MAX_QUOTED_CHARACTERS])


def check_event(event_id: str | None, message_id: str | None) -> None:
    if message_id is not None and len(message_id) > MAX_ID_CHARACTERS:
        raise errors.InvalidMessage(why=f"its id is longer than {MAX_ID_CHARACTERS} characters")
    if event_id is None:
        return
    if not 0 < len(event_id) <= MAX_EVENT_ID_CHARACTERS:
        raise errors.InvalidMessage(why=f"its event id has not 1 to {MAX_EVENT_ID_CHARACTERS} characters")
    if "\0" in event_id:
        raise errors.InvalidMessage(why="its event id holds a NUL character")
    if not event_id.isascii():
        messages.pack({"role": "user", "content": event_id})
