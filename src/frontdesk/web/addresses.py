"""Where browsers reach us: at the port itself, or through a proxy with a name, a prefix and TLS of its
own."""

from contextvars import ContextVar
from urllib.parse import urlsplit

import msgspec

HTTPS = "https"


class PublicAddress(msgspec.Struct, frozen=True, kw_only=True):
    """What is said of it in the settings; nothing where browsers connect to the port itself."""

    url: str | None = None
    origin: str | None = None
    host: str | None = None
    root: str = ""
    """The prefix of every path, as a browser sees it: empty, or as in ``/frontdesk``."""

    @classmethod
    def of(cls, url: str | None) -> "PublicAddress":
        if not url:
            return cls()
        parts = urlsplit(url)
        origin = f"{parts.scheme}://{parts.netloc}".lower()
        root = parts.path.rstrip("/")
        return cls(url=origin + root, origin=origin, host=parts.hostname, root=root)

    @property
    def is_secure(self) -> bool:
        return (self.origin or "").startswith(HTTPS)

    def below(self, path: str) -> str:
        """The path as we know it, whether a proxy has taken the prefix away or not."""
        if not self.root or not f"{path}/".startswith(f"{self.root}/"):
            return path
        return path[len(self.root) :] or "/"


THE_PORT = PublicAddress()
here: ContextVar[PublicAddress] = ContextVar("here", default=THE_PORT)
"""Of the server that answers the request."""


def link(path: str) -> str:
    """A path of ours, as a browser asks for it."""
    return here.get().root + path
