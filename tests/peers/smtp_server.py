"""A mail server that takes mail and can be put in trouble. Run by the Python that `make peers` made."""

import asyncio
import imaplib
import random
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session

HOST = "127.0.0.1"


class Handler:
    """Keeps what it takes in a folder of files, and where it is told to, in a mailbox, as providers do."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.mode = "works"
        self.count = 0
        self.chance = random.Random()
        self.mailbox: list[str] = []
        self.box: imaplib.IMAP4 | None = None
        self.thread = ThreadPoolExecutor(1)
        self.unknown = ""

    def obey(self, order: str) -> None:
        if order.startswith("files "):
            self.mailbox = order.split()[1:]
        elif order.startswith("knows not "):
            self.unknown = order.removeprefix("knows not ")
        else:
            self.mode = order

    def take(self, content: bytes) -> None:
        """On a thread, which goes on to its end when whoever sent it hangs up."""
        self.count += 1
        whole = self.folder / f"{self.count:04}"
        whole.with_suffix(".part").write_bytes(content)
        whole.with_suffix(".part").rename(whole)
        if self.mailbox:
            self.opened().append(self.mailbox[3], "", "", content)

    def opened(self) -> imaplib.IMAP4:
        """Signing in takes the server longer than all else: once will do."""
        if self.box is None:
            port, login, password, _ = self.mailbox
            self.box = imaplib.IMAP4(HOST, int(port))
            self.box.login(login, password)
        return self.box

    async def handle_RCPT(
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        if address == self.unknown:
            return "550 5.1.1 no such mailbox"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:
        mode, content = self.mode, bytes(envelope.content or b"")
        if mode == "weather":
            mode = self.chance.choice(("works",) * 5 + ("fails", "loses", "cuts"))
        if mode == "fails":
            return "451 4.3.0 out of order"
        if mode == "refuses for good":
            return "552 5.3.4 too large"
        if mode == "loses":
            server.transport.abort()
            return "250 not taken"
        await asyncio.get_running_loop().run_in_executor(self.thread, self.take, content)
        if mode == "hangs":
            await asyncio.Event().wait()
        if mode == "cuts":
            server.transport.abort()
        return "250 taken"


def check(server: SMTP, session: Session, envelope: Envelope, mechanism: str, login: object) -> AuthResult:
    good = isinstance(login, LoginPassword) and login.password == b"secret"
    return AuthResult(success=good, handled=False)


async def serve(port: int, folder: Path) -> None:
    loop, handler, orders = asyncio.get_running_loop(), Handler(folder), asyncio.Queue[str]()

    def protocol() -> SMTP:
        return SMTP(handler, authenticator=check, auth_require_tls=False, auth_required=True, loop=loop)

    def read() -> None:
        for line in sys.stdin:
            loop.call_soon_threadsafe(orders.put_nowait, line.strip())
        loop.call_soon_threadsafe(orders.put_nowait, "end")

    threading.Thread(target=read, daemon=True).start()
    server = await loop.create_server(protocol, HOST, port)
    print("ready", flush=True)
    while (order := await orders.get()) != "end":
        server.close()
        if order != "refuses":
            server = await loop.create_server(protocol, HOST, port)
        handler.obey(order)
        print("done", flush=True)


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1]), Path(sys.argv[2])))
