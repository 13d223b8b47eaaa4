"""What comes in: a mail becomes a message, or a reason why it does not."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from email.errors import MessageError
from email.message import Message
from email.utils import parsedate_to_datetime

import msgspec

from frontdesk import errors
from frontdesk.channels.email import addresses, bodies, trust
from frontdesk.channels.email.options import Options
from frontdesk.channels.email.parsing import TooMuch, parse
from frontdesk.contracts import channels
from frontdesk.formats import quoting
from frontdesk.model.chats import Attachment, ReplyHandle
from frontdesk.model.platforms import Platform
from frontdesk.model.sources import SessionSource

MOST_SUBJECT_CHARACTERS = 200
MOST_FILES = 50
CUT = "[The mail is longer than {most} bytes: its end was not read.]"
LEFT_OUT = "[It has {count} files, of which the first {most} can be had.]"


class Thread(msgspec.Struct, frozen=True, kw_only=True):
    """What an answer needs to be seen as one."""

    subject: str = ""
    references: tuple[str, ...] = ()


@contextmanager
def translated_errors() -> Iterator[None]:
    """What the library stumbles over in a mail that is none."""
    try:
        yield
    except errors.FrontdeskError:
        raise
    except TooMuch as error:
        raise errors.InvalidInput(what="The mail", why=str(error)) from error
    except (AttributeError, LookupError, MessageError, RecursionError, TypeError, ValueError) as error:
        why = f"it cannot be read ({type(error).__name__})"
        raise errors.InvalidInput(what="The mail", why=why) from error


def read_mail(raw: bytes, place: str, options: Options, account: str | None) -> channels.Incoming:
    """The message in a mail. InvalidInput says why it is none that can be answered; NotAllowed, that its
    sender is not proven."""
    with translated_errors():
        mail = parse(raw)
        found = addresses.sender(mail)
        if found is None:
            raise errors.InvalidInput(what="The mail", why="it does not say plainly who wrote it")
        address, name = found
        if why := trust.why_automatic(mail, address, options.address):
            raise errors.InvalidInput(what="The mail", why=f"a program wrote it: {why}")
        if options.authserv_id and not trust.is_proven(mail, address, options.authserv_id):
            raise errors.NotAllowed(who=quoting.quote(address), rule="unproven sender")
        return _incoming(mail, raw, place, options, account, address, name)


def read_file(raw: bytes, number: int) -> bytes | None:
    """The bytes of one of a mail's files."""
    with translated_errors():
        files = bodies.files(parse(raw))
        return bodies.payload(files[number]) if number < len(files) else None


def _incoming(
    mail: Message, raw: bytes, place: str, options: Options, account: str | None, address: str, name: str
) -> channels.Incoming:
    own_id = addresses.message_id(mail) or f"<{hashlib.sha256(raw).hexdigest()[:32]}@mail.invalid>"
    before = addresses.references(mail)
    subject = quoting.clean_text(addresses.header(mail, "Subject"), MOST_SUBJECT_CHARACTERS)
    text = bodies.written(mail, options.max_text_characters)
    is_cut = len(raw) >= options.max_mail_bytes
    found = bodies.files(mail, is_cut=is_cut)
    files = tuple(
        Attachment(
            id=f"{place}:{number}",
            name=quoting.one_line(_name(part), quoting.MAX_CHARACTERS) or None,
            kind=part.get_content_type(),
            size=len(bodies.payload(part)),
        )
        for number, part in enumerate(found[:MOST_FILES])
    )
    if not text.strip() and not files:
        text = subject
    more = (
        CUT.format(most=options.max_mail_bytes) if is_cut else "",
        LEFT_OUT.format(count=len(found), most=MOST_FILES) if len(found) > MOST_FILES else "",
    )
    text = "\n\n".join(filter(None, (text, *more)))
    thread = Thread(subject=subject, references=(*before, own_id))
    source = SessionSource(
        platform=Platform.EMAIL,
        account=account,
        chat_id=address,
        user_id=address,
        user_name=name or None,
        thread_id=(before or [own_id])[0],
        chat_topic=_without_re(subject) or None,
        message_id=own_id,
    )
    return channels.Incoming(
        source=source,
        text=text,
        event_id=f"{own_id} {address}",
        sent_at=_sent_at(mail),
        files=files,
        handle=ReplyHandle(value=msgspec.json.encode(thread).decode()),
    )


def _name(part: Message) -> str:
    try:
        return part.get_filename() or ""
    except (LookupError, ValueError, TypeError):
        return ""


def _without_re(subject: str) -> str:
    while subject[:3].lower() == "re:":
        subject = subject[3:].strip()
    return subject


def _sent_at(mail: Message) -> datetime | None:
    try:
        at = parsedate_to_datetime(str(mail.get("Date", "")))
        return at.astimezone(UTC) if at.tzinfo else at.replace(tzinfo=UTC)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
