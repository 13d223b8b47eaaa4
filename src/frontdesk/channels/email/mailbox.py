"""A folder of mail on a server. Its calls wait for the network: they are made on threads."""

import imaplib
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from typing import cast

import imap_tools

from frontdesk.channels.email.options import Options, Security
from frontdesk.channels.email.positions import MailboxTrouble
from frontdesk.formats import quoting

MARGIN = timedelta(days=1)
LOGIN_REFUSED = (
    "the server refuses the user name or the password. A provider with two-step sign-in wants an app password"
)


@contextmanager
def translated_errors() -> Iterator[None]:
    try:
        yield
    except imap_tools.MailboxLoginError as error:
        said = quoting.one_line(
            b" ".join(filter(None, error.command_result[1])).decode(errors="replace"), 200
        )
        raise MailboxTrouble(f"{LOGIN_REFUSED} ({said})") from error
    except (OSError, imaplib.IMAP4.error, imap_tools.ImapToolsError, EOFError) as error:
        why = quoting.one_line(f"{type(error).__name__}: {error}", 200)
        raise MailboxTrouble(why) from error


class Mailbox:
    """A connection with a folder open."""

    def __init__(self, options: Options, folder: str | None = None) -> None:
        """MailboxTrouble when it cannot be reached, or refuses us."""
        self._options = options
        with translated_errors():
            try:
                self._box = _connect(options)
            except OSError as error:
                at = f"{options.imap_host}, port {options.imap_port}, {options.imap_security}"
                why = quoting.one_line(str(error) or type(error).__name__, 200)
                raise MailboxTrouble(f"{why} ({at})") from error
            try:
                self._begin(folder or options.folder)
            except BaseException:
                self.cut()
                raise

    def _begin(self, folder: str) -> None:
        self._box.login(self._options.login, self._options.password(), initial_folder=None)
        self._folder = folder
        self.look()
        _, told = self._box.client.capability()
        self.tells = any(b"IDLE" in bytes(line).upper().split() for line in told if line)
        """Whether the server says by itself that there is something new."""

    def look(self) -> None:
        """See the folder as it is now: under its name there may be another by now."""
        with translated_errors():
            self._box.folder.set(self._folder, readonly=True)
        self.validity = self._number("UIDVALIDITY")
        self.next_uid = self._number("UIDNEXT")

    def _number(self, name: str) -> int:
        _, found = self._box.client.response(name)
        if not found or not found[0]:
            raise MailboxTrouble(f"the server does not tell {name}")
        return int(cast("bytes", found[0]))

    def newer(self, uid: int) -> list[int]:
        """The mails behind one, oldest first."""
        return [number for number in self._search(f"UID {uid + 1}:*") if number > uid]

    def since(self, at: int) -> list[int]:
        """The mails that came then or later."""
        day = datetime.fromtimestamp(at, UTC) - MARGIN
        return self._search(f"SINCE {day.day}-{MONTHS[day.month - 1]}-{day.year}")

    def having(self, message_ids: Sequence[str]) -> set[str]:
        """Which of these ids mails here have. Servers find more than what is asked for: so it is read."""
        *others, last = [f'HEADER MESSAGE-ID "{each}"' for each in message_ids]
        found = self._search("".join([f"OR {each} " for each in others]) + last)
        if not found:
            return set()
        there = self._fetch(",".join(map(str, found)), "(BODY.PEEK[HEADER.FIELDS (MESSAGE-ID)])")
        return {each for each in message_ids if any(each.encode() in head for head in there)}

    def _search(self, criteria: str) -> list[int]:
        with translated_errors():
            status, found = self._box.client.uid("SEARCH", criteria)
        if status != "OK":
            raise MailboxTrouble("the server does not search")
        return sorted(int(number) for line in found if line for number in line.split())

    def read(self, uid: int) -> bytes | None:
        """The bytes of a mail, as many as are allowed; None when it is gone. It stays unread."""
        found = self._fetch(str(uid), f"(BODY.PEEK[]<0.{self._options.max_mail_bytes}>)")
        return found[0] if found else None

    def _fetch(self, uids: str, what: str) -> list[bytes]:
        with translated_errors():
            status, found = self._box.client.uid("FETCH", uids, what)
        if status != "OK":  # what cannot be had now is not gone
            raise MailboxTrouble(f"the server does not give out mail {quoting.one_line(uids, 100)}")
        return [bytes(each[1]) for each in found if isinstance(each, tuple)]

    def wait(self) -> None:
        """Until the server has news, or for a while."""
        with translated_errors():
            self._box.idle.wait(timeout=self._options.idle_seconds)

    def cut(self) -> None:
        """End it at once, whatever another thread waits for."""
        with suppress(OSError):
            self._box.client.sock.shutdown(socket.SHUT_RDWR)
        with suppress(OSError):
            self._box.client.shutdown()


MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def _connect(options: Options) -> imap_tools.BaseMailBox:
    host, port, patience = options.imap_host, options.imap_port, options.timeout_seconds
    match options.imap_security:
        case Security.TLS:
            return imap_tools.MailBox(host, port, timeout=patience, ssl_context=options.tls())
        case Security.STARTTLS:
            return imap_tools.MailBoxStartTls(host, port, timeout=patience, ssl_context=options.tls())
        case _:
            return imap_tools.MailBoxUnencrypted(host, port, timeout=patience)
