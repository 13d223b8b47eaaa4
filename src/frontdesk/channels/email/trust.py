"""Whether a mail is from whom it says, and whether a person wrote it."""

import re
from email.message import Message

from frontdesk.channels.email import addresses

MOST_CHARACTERS = 5_000
"""Of a header that is believed."""
AUTOMATIC = ("bulk", "junk", "list", "auto_reply")
AUTOMATIC_HEADERS = ("x-autoreply", "x-autorespond", "x-autoresponder", "feedback-id")
ROBOTS = re.compile(r"(?:mailer-daemon|postmaster|no-?reply|do-?not-?reply|bounces?)(?:[+-][^@]*)?@", re.I)


def is_proven(mail: Message, address: str, authserv_id: str) -> bool:
    """Whether our own mail server has found that the address is really the sender's: DMARC passed, or DKIM or
    SPF did for the address's own domain. Only the topmost of its results counts: those below may have come
    with the mail."""
    domain = address.rpartition("@")[2]
    for written in mail.get_all("Authentication-Results") or []:
        said = addresses.unquoted(str(written)[:MOST_CHARACTERS])
        if said is None:  # it may be our server's
            return False
        server, *results = said.split(";")
        if (server.split() or [""])[0].lower() != authserv_id.lower():
            continue
        return any(_passes(result, domain) for result in results)
    return False


def _passes(result: str, domain: str) -> bool:
    """Whether one method found that the domain stands behind the mail."""
    words = result.lower().split()
    if not words:
        return False
    pairs = [word.split("=", 1) for word in words if "=" in word]
    found = dict(pairs)
    if len(found) != len(pairs):  # who says something twice means two things
        return False
    match words[0]:
        case "dmarc=pass":
            return found.get("header.from") == domain
        case "dkim=pass":
            signer = found.get("header.d") or found.get("header.i", "").rpartition("@")[2]
            return _stands_for(signer, domain)
        case "spf=pass":
            return _stands_for(found.get("smtp.mailfrom", "").rpartition("@")[2], domain)
    return False


def _stands_for(signer: str, domain: str) -> bool:
    """A domain speaks for itself and for those below it; one below does not speak for it."""
    return bool(signer) and (domain == signer or domain.endswith(f".{signer}")) and "." in signer


def why_automatic(mail: Message, address: str, ours: str) -> str | None:
    """Why the mail is answered by nobody: a program wrote it, and would answer the answer."""
    submitted = str(mail.get("Auto-Submitted", "no")).split(";")[0].strip().lower()
    if submitted != "no":
        return "Auto-Submitted"
    if str(mail.get("Precedence", "")).strip().lower() in AUTOMATIC:
        return "Precedence"
    for name in mail:
        if name.lower().startswith("list-") or name.lower() in AUTOMATIC_HEADERS:
            return name
    if "".join(str(mail.get("Return-Path", "x")).split()) == "<>":
        return "no return path"
    if mail.get_content_type() == "multipart/report":
        return "a report"
    if address == ours.lower():
        return "our own"
    return "a robot's address" if ROBOTS.match(address) else None
