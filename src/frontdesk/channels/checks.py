"""What several channels ask of their settings."""

import re

import msgspec

from frontdesk import errors

ACCOUNT = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


def check_account(channel: str, account: str | None) -> None:
    """Refuse a name that cannot stand in an address."""
    if account is not None and not ACCOUNT.fullmatch(account):
        allowed = "a-z, A-Z, 0-9, '_' and '-', at most 64 characters"
        raise errors.InvalidSetting(key=f"{channel} name", value=account, allowed=allowed)


def check_positive(channel: str, options: msgspec.Struct, *names: str) -> None:
    """Refuse a bound that lets nothing through."""
    for name in names:
        value = getattr(options, name)
        if not value > 0:
            raise errors.InvalidSetting(key=f"{channel}.{name}", value=value, allowed="a number over 0")
