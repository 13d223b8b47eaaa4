"""Any bytes are a message that can be kept and answered, or refused."""

import random
from datetime import UTC, datetime

import pytest

from frontdesk import errors
from frontdesk.channels.email import addresses, inbound, options, outbound
from frontdesk.contracts import channels
from frontdesk.flow import checks
from frontdesk.model.deliveries import Delivery
from tests import counts, fuzzing

OPTIONS = options.Options(address="desk@f.test", password=lambda: "x", imap_host="x", smtp_host="x")
CHECKED = options.Options(
    address="desk@f.test", password=lambda: "x", imap_host="x", smtp_host="x", authserv_id="m"
)
NOW = datetime(2026, 1, 5, tzinfo=UTC)
ANSWERED_EVERY = 50
"""Making an answer takes many times as long as reading."""
FRONTS = (
    b"From: a@b.test\r\n",
    b"From: a@b.test\r\nMessage-ID: <1@b.test>\r\nSubject: x\r\n",
    b"From: =?utf-8?q?A?= <a@b.test>\r\nAuthentication-Results: m; dmarc=pass header.from=b.test\r\n",
    b"From: a@b.test\r\nContent-Type: multipart/mixed; boundary=x\r\n\r\n--x\r\n",
    b"From: a@b.test\r\nContent-Type: multipart/alternative; boundary=x\r\n\r\nx\r\n--x\r\n",
    b"",
)
PIECES = (
    b"From: a@b.test\r\n|From: |\r\n|\r\n\r\n|Subject: =?utf-8?q?=C3?= =?x?b?!?=|--x\r\n|--x--|\n|\r"
    b"| |:|\x00|=\r\n|Content-Type: multipart/mixed; boundary=x\r\n|Content-Type: text/html; charset="
    b"|utf-7|<p|<!|utf-16|punycode|Content-Transfer-Encoding: base64\r\n"
    b"|Content-Disposition: attachment; filename*0*=|''%ff|\xff\xfe|+2AA-"
    b"|Content-Type: message/rfc822\r\n|References: <a> <|Date: Mon, 99 Jan 99999 99:99:99 +9999\r\n"
    b'|> |-- \r\n|Authentication-Results: m; (((|Message-ID: <|@>\r\n|</div>|=?utf-8?b?|?=|";|\\|,|('
    b"|)|<|>|;|quoted-printable|Subject: |In-Reply-To: <b@c>\r\n"
    b"|Content-Transfer-Encoding: uuencode\r\n\r\nbegin 644 x\n|\xc3\xa9|\xed\xa0\x80"
    b"|raw_unicode_escape|\\ud800|Date: Fri, 31 Dec 9999 23:59:59 -1200\r\n"
    b"|Content-Type: text/plain; name=|\xe2\x80\xae|<html><blockquote>|&#xd800;|&#0;|\x0b|\x85"
    b"|Precedence: |Return-Path: |Auto-Submitted: no"
).split(b"|")


def made(chance: random.Random) -> bytes:
    """Pieces of mails, put together, some with a byte changed."""
    pieces = chance.choices(PIECES, k=1 + int(chance.random() * 16))
    mail = chance.choice(FRONTS) + b"".join(pieces)
    if chance.random() < 0.2:
        at = int(chance.random() * len(mail))
        mail = mail[:at] + bytes((int(chance.random() * 256),)) + mail[at + 1 :]
    return mail


def check(incoming: channels.Happening) -> None:
    assert isinstance(incoming, channels.Incoming)
    source = incoming.source
    assert source.user_id == source.chat_id
    assert addresses.ADDRESS.fullmatch(source.user_id or "")
    for named in (source.thread_id, source.message_id):
        assert addresses.MESSAGE_ID.fullmatch(named or "")
    for line in (source.user_name, source.chat_topic, *(each.name for each in incoming.files)):
        assert not {"\n", "\r", "\0"} & set(line or "")
    assert len(incoming.text) <= OPTIONS.max_text_characters
    checks.check_event(incoming.event_id, source.message_id)
    if incoming.text.strip() or incoming.files:
        checks.check_message(incoming)


def answer(incoming: channels.Incoming) -> None:
    delivery = Delivery(
        id="d", lane="x", to=incoming.source, text="Yes.", handle=incoming.handle, created_at=NOW
    )
    head = outbound.build_mail(delivery, OPTIONS).partition(b"\r\n\r\n")[0]
    names = {line.partition(b":")[0] for line in head.split(b"\r\n") if line[:1] not in b" \t"}
    assert names <= {
        *(
            b"From",
            b"To",
            b"Subject",
            b"Date",
            b"Message-ID",
            b"Auto-Submitted",
            b"In-Reply-To",
            b"References",
        ),
        *(b"MIME-Version", b"Content-Type", b"Content-Transfer-Encoding"),
    }


class Reader:
    """Reads mails, some as from a server that proves senders, and answers some."""

    def __init__(self) -> None:
        self.tried = self.taken = 0

    def __call__(self, mail: bytes) -> list[channels.Happening]:
        self.tried += 1
        try:
            incoming = inbound.read_mail(mail, "1:2", CHECKED if self.tried % 8 == 0 else OPTIONS, None)
        except errors.NotAllowed:
            return []
        self.taken += 1
        for place in range(len(incoming.files)):
            inbound.read_file(mail, place)
        if self.taken % ANSWERED_EVERY == 0:
            answer(incoming)
        return [incoming]


@pytest.mark.prove
def test_any_bytes_are_a_message_or_refused(tell: counts.Tell) -> None:
    fuzzing.read_or_refused(made, Reader(), tell, of="email", reduced=3_000, check=check)
