"""What channels have in common that are called over HTTP."""

import asyncio
import ipaddress
import re
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar
from urllib.parse import urlsplit

import msgspec

from frontdesk import errors
from frontdesk.contracts import channels
from frontdesk.contracts.clock import Clock, SystemClock
from frontdesk.contracts.secrets import Secret
from frontdesk.formats import quoting
from frontdesk.model.platforms import Platform

ACCOUNT = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
PLAIN = {"https": "http", "wss": "ws"}
"""What is not encrypted, beside what is."""
MOST_VALUES = 50_000
"""In one body, at any depth: each is looked at several times, and others wait meanwhile."""
SIGNS = (b",", b"[", b"{")
"""Before each value of a list or an object there is one of these."""

OptionsOf = TypeVar("OptionsOf")
Read = TypeVar("Read")

_PLACE = re.compile(r"(?:required field `([^`]*)`)?(?: - at `\$\.?([^`]*)`)?$")


class CalledChannel(Generic[OptionsOf]):
    """A channel whose messages come as requests: it has a desk for as long as it receives."""

    def __init__(
        self, platform: Platform, options: OptionsOf, account: str | None, clock: Clock | None
    ) -> None:
        """InvalidSetting for an account whose name cannot stand in an address."""
        if account is not None and not ACCOUNT.fullmatch(account):
            allowed = "a-z, A-Z, 0-9, '_' and '-', at most 64 characters"
            raise errors.InvalidSetting(key=f"{platform} name", value=account, allowed=allowed)
        self.name: str = platform
        self.account = account
        self._options = options
        self._clock = clock or SystemClock()
        self._desk: channels.Desk | None = None

    async def receive(self, desk: channels.Desk) -> None:
        self._desk = desk
        try:
            await asyncio.Event().wait()
        finally:
            self._desk = None


def why_unusable(secrets: Iterable[Secret], check: Callable[[str], object] = str) -> str | None:
    """Why none of the secrets can be used; None when one can."""
    met: list[str] = []
    for secret in secrets:
        try:
            check(secret())
        except (errors.MissingSecret, errors.InvalidInput) as error:
            met.append(str(error))
        else:
            return None
    return " ".join(met)


def check_positive(channel: str, options: msgspec.Struct, *names: str) -> None:
    """Refuse a bound that lets nothing through."""
    for name in names:
        value = getattr(options, name)
        if not value > 0:
            raise errors.InvalidSetting(key=f"{channel}.{name}", value=value, allowed="a number over 0")


def check_address(
    key: str, url: str, scheme: str = "https", *, allow_insecure: bool | None = None, may_ask: bool = False
) -> None:
    """Refuse an address that no token may go to: one that is not encrypted, but for this machine, unless its
    owner allows that, where they can; one with a query, unless it may have one."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        host, parts = None, urlsplit("")
    plain = parts.scheme == PLAIN[scheme] and (allow_insecure or _is_here(host or ""))
    asks = (parts.query or parts.fragment) and not may_ask
    if not host or not (parts.scheme == scheme or plain) or parts.username is not None or asks:
        without = "a user name" if may_ask else "a user name and a query"
        allowed = f"an {scheme} address without {without}, or {PLAIN[scheme]} to this machine"
        if allow_insecure is False:
            allowed += f"; allow_insecure = true permits plain {PLAIN[scheme]}"
        shown = f"{parts.scheme}://{host}" if host else "no address"
        raise errors.InvalidSetting(key=key, value=shown, allowed=allowed)


def _is_here(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def check_proxy(text: str) -> None:
    """Refuse what cannot be the address of a proxy."""
    try:
        parts = urlsplit(text)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise errors.InvalidInput(what="The proxy", why="use an address such as http://proxy.example:3128")


def read_json(kind: type[Read], body: bytes) -> Read:
    """The record in a body. Total: whatever is not one raises InvalidInput, which names the field.

    Fields that the record does not have are passed over.
    """
    if _values_in(body) > MOST_VALUES:
        raise errors.InvalidInput(what="The body", why=f"it has more than {MOST_VALUES} values")
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.ValidationError as error:
        raise errors.InvalidInput(what="The body", why=quoting.clean_text(str(error))) from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise errors.InvalidInput(what="The body", why="it is not valid JSON of valid Unicode") from None
    except RecursionError:
        raise errors.InvalidInput(what="The body", why="it is nested too deeply") from None


def _values_in(body: bytes) -> int:
    """How many values there are in JSON, told without decoding it; one more than the most may stand for all
    that are more."""
    signs = sum(map(body.count, SIGNS))
    if signs <= MOST_VALUES:
        return signs
    # Most of them may stand inside texts, which are every other piece between quotes that end or begin one.
    pieces = body.replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"', 4 * MOST_VALUES)
    if len(pieces) > 4 * MOST_VALUES:
        return MOST_VALUES + 1
    outside = b"".join(pieces[::2])
    return sum(map(outside.count, SIGNS))


def field_of(error: errors.InvalidInput | errors.UnknownName) -> str | None:
    """The field that the error is about, when it names one as :func:`read_json` does."""
    found = _PLACE.search(str(error))
    return ".".join(filter(None, (found[2], found[1]))) or None if found else None
