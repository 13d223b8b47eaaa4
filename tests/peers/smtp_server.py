"""A mail server that takes mail and can be put in trouble. Run by the Python that `make peers` made."""

import asyncio
import sys
import threading
from pathlib import Path

from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session

HOST = "127.0.0.1"


class Handler:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.mode = "works"
        self.count = 0

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:
        if self.mode == "fails":
            return "451 4.3.0 out of order"
        if self.mode == "refuses for good":
            return "552 5.3.4 too large"
        self.count += 1
        (self.folder / f"{self.count:04}").write_bytes(bytes(envelope.content or b""))
        if self.mode == "hangs":
            await asyncio.Event().wait()
        if self.mode == "cuts":
            server.transport.abort()
        return "250 taken"


def check(server: SMTP, session: Session, envelope: Envelope, mechanism: str, login: object) -> AuthResult:
    good = isinstance(login, LoginPassword) and login.password == b"secret"
    return AuthResult(success=good)


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
        handler.mode = order
        print("done", flush=True)


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1]), Path(sys.argv[2])))
