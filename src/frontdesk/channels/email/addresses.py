"""Addresses and names in the headers of a mail, read strictly: who wrote it must mean one thing."""

import re
import unicodedata
from email.errors import MessageError
from email.header import decode_header, make_header
from email.message import Message

from frontdesk.formats import quoting

MOST_CHARACTERS = 5_000
"""Of a header that is read; few have more."""
MOST_ADDRESS_CHARACTERS = 254
MOST_REFERENCE_CHARACTERS = 6_000
SIGN = r"[!#-'*+\-/-9=?A-Z^-~]"
"""Of an address: no letters that look like others, nothing that other programs read as more than a letter."""
ADDRESS = re.compile(rf"(?=[^@]{{1,64}}@){SIGN}+(?:\.{SIGN}+)*@{SIGN}+(?:\.{SIGN}+)*")
MESSAGE_ID = re.compile(r"<[!-;=?-~]{1,240}>")
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
    """The address and the name of whoever wrote it; None unless there is exactly one, written plainly. A name
    that has an address in it is none: whoever reads it would take that for the sender's."""
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
    poses = "@" in unicodedata.normalize("NFKC", name)
    return address, "" if poses else quoting.clean_text(name)


def message_id(mail: Message) -> str | None:
    found = MESSAGE_ID.search(str(mail.get("Message-ID", "")))
    return found.group() if found else None


def references(mail: Message) -> list[str]:
    """The mails before it, oldest first; of many, the first and the last ones."""
    named = f"{mail.get('References', '')} {mail.get('In-Reply-To', '')}"
    first, *others = list(dict.fromkeys(MESSAGE_ID.findall(named))) or [""]
    kept, room = [first] if first else [], MOST_REFERENCE_CHARACTERS
    for each in reversed(others):
        room -= len(each)
        if room < 0:
            break
        kept.insert(1, each)
    return kept
