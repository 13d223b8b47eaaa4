"""Servers of mail for tests: pymap keeps mailboxes, aiosmtpd takes what is sent; both on loopback."""

import contextlib
import email
import itertools
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from email.message import EmailMessage
from email.policy import default
from pathlib import Path

import imap_tools

from tests import loopback, peers
from tests.patience import PATIENCE_SECONDS

LOGIN = "desk@frontdesk.test"
PASSWORD = "secret"
POLL_SECONDS = 0.05


class PostOffice:
    """Both servers. Each test has folders of its own on the one, and all see what the other has taken."""

    def __init__(self, imap_port: int, smtp_port: int, smtp: "subprocess.Popen[str]", taken: Path) -> None:
        self.imap_port, self.smtp_port = imap_port, smtp_port
        self._smtp, self._taken = smtp, taken
        self._numbers = itertools.count(1)
        self._read: dict[Path, EmailMessage] = {}

    def use(self, own: imap_tools.BaseMailBox) -> None:
        self._own = own

    def new_folder(self) -> str:
        name = f"folder-{next(self._numbers)}"
        self._own.folder.create(name)
        return name

    @contextmanager
    def mailbox(self) -> Iterator[imap_tools.BaseMailBox]:
        box = imap_tools.MailBoxUnencrypted("127.0.0.1", self.imap_port, timeout=PATIENCE_SECONDS)
        with box.login(LOGIN, PASSWORD, initial_folder=None) as opened:
            yield opened

    def bring(self, folder: str, mail: bytes) -> int:
        """Put a mail into a folder; its number there."""
        self._own.append(mail, folder)
        return self._own.folder.status(folder, ["UIDNEXT"])["UIDNEXT"] - 1

    def mode(self, mode: str) -> None:
        """What the server that takes mail does from now on: works, fails, refuses, hangs, cuts; or something
        by chance (weather)."""
        assert self._smtp.stdin
        assert self._smtp.stdout
        self._smtp.stdin.write(f"{mode}\n")
        self._smtp.stdin.flush()
        assert self._smtp.stdout.readline() == "done\n"

    def file_into(self, folder: str) -> None:
        """It keeps what it takes in this folder, too."""
        self.mode(f"files {self.imap_port} {LOGIN} {PASSWORD} {folder}")

    def forget(self, address: str) -> None:
        """There is no such mailbox any more; the one forgotten before is there again."""
        self.mode(f"knows not {address}")

    def taken(self) -> list[EmailMessage]:
        """All that it took, copies included."""
        files = sorted(file for file in self._taken.iterdir() if not file.suffix)
        for file in files:
            if file not in self._read:
                self._read[file] = email.message_from_bytes(file.read_bytes(), policy=default)
        return [self._read[file] for file in files]

    def empty(self) -> None:
        for file in self._taken.iterdir():
            file.unlink()
        self._read.clear()


@contextmanager
def running() -> Iterator[PostOffice]:
    programs = peers.require("mail")
    with tempfile.TemporaryDirectory(prefix="mail-") as folder, contextlib.ExitStack() as stack:
        imap_port, smtp_port, taken = loopback.free_port(), loopback.free_port(), Path(folder) / "taken"
        taken.mkdir()
        imap = [str(programs / "pymap"), "--host", "127.0.0.1", "--port", str(imap_port), "--no-tls", "dict"]
        user = ["--demo-data", "--demo-user", LOGIN, "--demo-password", PASSWORD]
        script = Path(__file__).with_name("smtp_server.py")
        smtp = [str(programs / "python"), "-W", "ignore", str(script), str(smtp_port), str(taken)]
        with (Path(folder) / "log").open("w") as log:
            keeping = stack.enter_context(
                subprocess.Popen([*imap, *user], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
            )
            stack.callback(keeping.terminate)
            taking = stack.enter_context(
                subprocess.Popen(smtp, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True)
            )
            stack.callback(taking.terminate)
        assert taking.stdout
        assert taking.stdout.readline() == "ready\n"
        office = PostOffice(imap_port, smtp_port, taking, taken)
        _wait_until_ready(office, keeping)
        with office.mailbox() as own:
            office.use(own)
            yield office


def _wait_until_ready(office: PostOffice, keeping: "subprocess.Popen[bytes]") -> None:
    end = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < end and keeping.poll() is None:
        with contextlib.suppress(OSError), office.mailbox():
            return
        time.sleep(POLL_SECONDS)
    raise AssertionError("the server of mailboxes did not start")
