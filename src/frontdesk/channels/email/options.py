"""How a mailbox is set up."""

import ipaddress
import ssl
from enum import StrEnum

import msgspec

from frontdesk import errors
from frontdesk.channels.called import check_positive
from frontdesk.channels.email.addresses import ADDRESS
from frontdesk.contracts.secrets import Secret
from frontdesk.model.chats import Quota

MIB = 1024 * 1024
MOST_IDLE_SECONDS = 29 * 60.0
"""Servers may hang up on whoever waits longer."""


class Security(StrEnum):
    TLS = "tls"
    STARTTLS = "starttls"
    NONE = "none"


class Options(msgspec.Struct, frozen=True, kw_only=True):
    address: str
    """Our address: mail from it is never answered."""
    password: Secret
    imap_host: str
    smtp_host: str
    username: str | None = None
    """What the servers know us by; the address, unless it is another name."""
    name: str | None = None
    """What stands beside our address."""
    imap_port: int = 993
    imap_security: Security = Security.TLS
    smtp_port: int = 465
    smtp_security: Security = Security.TLS
    folder: str = "INBOX"
    sent_folder: str | None = None
    """Where the provider itself keeps what we have sent: there an answer is looked for that may be lost."""
    authserv_id: str | None = None
    """Who our mail server calls itself in the results of its checks. Without it no sender is proven."""
    allow_insecure: bool = False
    """Whether the password may go to another machine without TLS."""
    max_mail_bytes: int = 25 * MIB
    """Longer mails are not read to their end: their text may be there, their files are not."""
    max_text_characters: int = 100_000
    max_answers_per_hour: int = 30
    """To one correspondent; 0: as many as they want."""
    max_answers_per_day: int = 200
    idle_seconds: float = 60.0
    """How long the server is waited for before we look by ourselves."""
    timeout_seconds: float = 20.0

    def __post_init__(self) -> None:
        if not ADDRESS.fullmatch(self.address):
            raise errors.InvalidSetting(
                key="email.address", value=self.address, allowed="an address such as desk@example.com"
            )
        check_positive(
            "email", self, "max_mail_bytes", "max_text_characters", "idle_seconds", "timeout_seconds"
        )
        for name in ("max_answers_per_hour", "max_answers_per_day"):
            if getattr(self, name) < 0:
                allowed = "a number; 0 sets no bound"
                raise errors.InvalidSetting(key=f"email.{name}", value=getattr(self, name), allowed=allowed)
        if self.idle_seconds > MOST_IDLE_SECONDS:
            allowed = f"at most {MOST_IDLE_SECONDS:g}"
            raise errors.InvalidSetting(key="email.idle_seconds", value=self.idle_seconds, allowed=allowed)
        for server in ("imap", "smtp"):
            host, security = getattr(self, f"{server}_host"), getattr(self, f"{server}_security")
            if security is Security.NONE and not self.allow_insecure and not _is_loopback(host):
                allowed = "tls or starttls; none only to this machine, or with allow_insecure = true"
                raise errors.InvalidSetting(
                    key=f"email.{server}_security", value=str(security), allowed=allowed
                )

    @property
    def quotas(self) -> tuple[Quota, ...]:
        bounds = ((self.max_answers_per_hour, 3600.0), (self.max_answers_per_day, 24 * 3600.0))
        return tuple(Quota(most=most, seconds=seconds) for most, seconds in bounds if most)

    @property
    def login(self) -> str:
        return self.username or self.address

    def tls(self) -> ssl.SSLContext:
        return ssl.create_default_context()


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
