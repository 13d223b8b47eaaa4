"""The public port: had, or not to be had for a reason that is told."""

import errno
import socket
from collections.abc import Iterator
from contextlib import contextmanager

from frontdesk import errors
from frontdesk.formats.http import url_of
from frontdesk.web import bounds

MOST_BACKLOG, PORTION_OF_FILES = 1024, 8
"""Connections that wait to be taken: one by this of the files that may be open, at most so many. They are all
taken in one go, before any is counted; one that finds no place tries again after a second."""
UNREAD_BYTES = 32 * 1024
"""Of what each of them has sent: it is read at once, before anybody looks at it."""
PORTS = range(2**16)
OWN = "owner's socket"
"""The name of the one that is no port."""

Socket = socket.socket


@contextmanager
def listening(host: str, port: int, chosen: str = "in server.port") -> Iterator[Socket]:
    """A socket on the address; port 0 takes any that is free. ``chosen`` tells where another one is."""
    if port not in PORTS:
        raise errors.CannotListen(where=f"{host}:{port}", why="there is no such port")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        opened = socket.create_server((host, port), family=family, backlog=backlog())
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, UNREAD_BYTES)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise errors.AddressInUse(host=host, port=port, chosen=chosen) from error
        raise errors.CannotListen(where=f"{host}:{port}", why=error.strerror or str(error)) from error
    with opened:
        # Connections have it from here. Without it the end of each answer waits for the other side, 40 ms.
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        yield opened


def backlog() -> int:
    return min(MOST_BACKLOG, bounds.most_files() // PORTION_OF_FILES)


def name_of(listening: Socket) -> str:
    """What people call it."""
    if listening.family is socket.AF_UNIX:
        return OWN
    host, port, *_ = listening.getsockname()
    return url_of(host, port).removeprefix("http://")
