"""What goes out: an answer as a mail, and what is known about its arrival."""

import asyncio
import hashlib
import mimetypes
from contextlib import suppress
from email.errors import MessageError
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP as SMTP_POLICY
from email.utils import format_datetime
from pathlib import Path

import aiosmtplib
import msgspec

from frontdesk import errors
from frontdesk.channels.email.addresses import ADDRESS, MESSAGE_ID
from frontdesk.channels.email.inbound import Thread
from frontdesk.channels.email.options import Options, Security
from frontdesk.formats import quoting
from frontdesk.formats.markdown import page_html, plaintext
from frontdesk.model.deliveries import Delivery, NotSent, Outcome, Sent, Unknown
from frontdesk.model.sources import readable

NO_SUBJECT = "A message for you"
PERMANENT = 500
TOO_BUSY = 421


def message_id(delivery: Delivery, address: str) -> str:
    """The same for each attempt: a server that has it already may drop a second one."""
    digest = hashlib.sha256(delivery.id.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    return f"<frontdesk.{digest}@{address.rpartition('@')[2]}>"


def build_mail(delivery: Delivery, options: Options) -> bytes:
    """The mail for a delivery. Raises ValueError for an address that is none."""
    if not (delivery.to.chat_id.isascii() and ADDRESS.fullmatch(delivery.to.chat_id)):
        raise ValueError("it is no address")
    thread = _thread(delivery)
    mail = EmailMessage(policy=SMTP_POLICY.clone(max_line_length=900))
    mail["From"] = Address(quoting.clean_text(options.name or ""), addr_spec=options.address)
    mail["To"] = Address(addr_spec=delivery.to.chat_id)
    subject = _as_written(thread.subject or delivery.to.chat_topic or NO_SUBJECT)
    answers = bool(thread.references)
    mail["Subject"] = f"Re: {subject}" if answers and subject[:3].lower() != "re:" else subject
    mail["Date"] = format_datetime(delivery.created_at)
    mail["Message-ID"] = message_id(delivery, options.address)
    mail["Auto-Submitted"] = "auto-replied" if answers else "auto-generated"
    if answers:
        mail["In-Reply-To"] = thread.references[-1]
        mail["References"] = " ".join(thread.references)
    text = readable(delivery.text)
    mail.set_content(plaintext.render(text) if delivery.is_markdown else text, cte="base64")
    if delivery.is_markdown:
        mail.add_alternative(page_html.render(text), subtype="html", cte="base64")
    for file in delivery.files:
        kind = file.kind if "/" in file.kind else mimetypes.guess_type(file.name)[0] or ""
        main, _, sub = kind.partition("/")
        mail.add_attachment(
            Path(file.path or "").read_bytes(),
            maintype=main or "application",
            subtype=sub or "octet-stream",
            filename=_as_written(quoting.one_line(file.name, 200)),
        )
    return mail.as_bytes()


def _as_written(text: str) -> str:
    """What looks encoded and is not: the library would take it for what it seems to hold."""
    return readable(text).replace("=?", "= ?")


def _thread(delivery: Delivery) -> Thread:
    """What the mail that is answered said; of one that answers none, the thread that it goes into."""
    if delivery.handle:
        with suppress(msgspec.DecodeError):
            return msgspec.json.decode(delivery.handle.value, type=Thread)
    root = delivery.to.thread_id or ""
    return Thread(references=(root,) if MESSAGE_ID.fullmatch(root) else ())


async def send(delivery: Delivery, options: Options) -> Outcome:
    try:
        mail = await asyncio.to_thread(build_mail, delivery, options)
    except (ValueError, MessageError, OSError) as error:
        return NotSent(why=f"no mail can be made of it: {quoting.one_line(str(error), 200)}", hopeless=True)
    attempt = _Attempt(options)
    try:
        async with asyncio.timeout(options.timeout_seconds):
            return await attempt.send(delivery.to.chat_id, mail)
    except errors.MissingSecret as error:
        return NotSent(why=str(error))
    except aiosmtplib.SMTPResponseException as error:
        return _refused(error)
    except aiosmtplib.SMTPRecipientsRefused as error:
        return _refused(error.recipients[0])
    except (aiosmtplib.SMTPException, OSError, TimeoutError) as error:
        why = quoting.one_line(f"{type(error).__name__}: {error}", 200)
        return Unknown(why=why) if attempt.has_left else NotSent(why=why)
    finally:
        attempt.close()


async def why_refused(options: Options) -> str | None:
    """Why no mail could be sent now; None when one could. Nothing is sent."""
    attempt = _Attempt(options)
    try:
        async with asyncio.timeout(options.timeout_seconds):
            await attempt.begin()
    except (aiosmtplib.SMTPException, OSError, TimeoutError, errors.MissingSecret) as error:
        return quoting.one_line(f"{type(error).__name__}: {error}", 200)
    finally:
        attempt.close()
    return None


def _refused(error: aiosmtplib.SMTPResponseException) -> NotSent:
    """The server has said no: for now, or for good. What it says of us is no fault of the mail's."""
    said = quoting.one_line(f"the server answered {error.code} {error.message}", 200)
    about_us = isinstance(
        error,
        aiosmtplib.SMTPAuthenticationError | aiosmtplib.SMTPHeloError | aiosmtplib.SMTPConnectResponseError,
    )
    return NotSent(why=said, hopeless=error.code >= PERMANENT and not about_us)


class _Attempt:
    """One connection for one mail: what was used before may be cut at any moment."""

    def __init__(self, options: Options) -> None:
        self._options = options
        security = options.smtp_security
        self._client = aiosmtplib.SMTP(
            hostname=options.smtp_host,
            port=options.smtp_port,
            timeout=options.timeout_seconds,
            use_tls=security is Security.TLS,
            start_tls=security is Security.STARTTLS,
            tls_context=None if security is Security.NONE else options.tls(),
        )
        self.has_left = False
        """The mail may be with the server."""

    async def begin(self) -> None:
        """Sign in."""
        await self._client.connect()
        await self._client.ehlo()
        if self._client.supports_extension("auth"):
            await self._client.login(self._options.login, self._options.password())

    async def send(self, to: str, mail: bytes) -> Outcome:
        client = self._client
        await self.begin()
        await client.mail(self._options.address)
        await client.rcpt(to)
        self.has_left = True
        await client.data(mail)
        return Sent(message_id=_own_id(mail))

    def close(self) -> None:
        self._client.close()


def _own_id(mail: bytes) -> str | None:
    found = MESSAGE_ID.search(mail.partition(b"Message-ID:")[2][:400].decode("ascii", "replace"))
    return found.group() if found else None
