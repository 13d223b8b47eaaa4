"""Addresses and names in the headers of a mail, read strictly: who wrote it must mean one thing."""

import re
from email.errors import MessageError
from email.header import decode_header, make_header
from email.message import Message

from frontdesk.formats import quoting

MOST_CHARACTERS = 5_000
"""Of a header that is read; few have more."""
MOST_ADDRESS_CHARACTERS = 254
MOST_ID_CHARACTERS = 250
MOST_REFERENCES = 100
ADDRESS = re.compile(r"[^\s@<>()\[\]\\,;:\"]{1,64}@[^\s@<>()\[\]\\,;:\".]+(?:\.[^\s@<>()\[\]\\,;:\".]+)*")
MESSAGE_ID = re.compile(r"<[^<>\s]{1,248}>")
NAMED = re.compile(r"[^<>,;:@\"()]*<([^<>\s]+)>")


def header(mail: Message, name: str) -> str:
    """A header in one line, as people read it; empty when there is none."""
    written = str(mail.get(name, ""))[:MOST_CHARACTERS]
    try:
        read = str(make_header(decode_header(written)))
    except (LookupError, UnicodeError, ValueError, MessageError):
        read = written
    return quoting.one_line(read.encode("utf-8", "replace").decode(), None)


def unquoted(text: str) -> str | None:
    """What a header says besides its comments and quoted words, which anybody may have chosen; None where it
    is not plain which those are: others would read something else. In a comment a quotation mark means
    nothing, and not every program knows."""
    kept: list[str] = []
    depth, is_quoted, is_escaped = 0, False, False
    for each in text:
        if is_escaped or each == "\\":
            is_escaped = not is_escaped
        elif each == '"':
            if depth:
                return None
            is_quoted = not is_quoted
        elif is_quoted:
            continue
        elif each in "()":
            depth += 1 if each == "(" else -1
            if depth < 0:
                return None
            kept.append(" ")
        elif not depth:
            kept.append(each)
    return None if depth or is_quoted or is_escaped else "".join(kept)


def sender(mail: Message) -> tuple[str, str] | None:
    """The address and the name of whoever wrote it; None unless there is exactly one, written plainly."""
    found = mail.get_all("From") or []
    if len(found) != 1:
        return None
    bare = unquoted(" ".join(str(found[0])[:MOST_CHARACTERS].split()))
    if bare is None:
        return None
    bare = bare.strip()
    named = NAMED.fullmatch(bare)
    address = (named.group(1) if named else bare).lower()
    if not ADDRESS.fullmatch(address) or len(address) > MOST_ADDRESS_CHARACTERS:
        return None
    name = header(mail, "From").rpartition("<")[0].strip().strip('"')
    return address, quoting.clean_text(name)


def message_id(mail: Message) -> str | None:
    found = MESSAGE_ID.search(str(mail.get("Message-ID", "")))
    return found.group() if found else None


def references(mail: Message) -> list[str]:
    """The mails before it, oldest first."""
    named = f"{mail.get('References', '')} {mail.get('In-Reply-To', '')}"
    found = list(dict.fromkeys(MESSAGE_ID.findall(named)))
    return [*found[:1], *found[1:][-MOST_REFERENCES:]]
