"""The settings of the confirmation service."""

import re
from collections.abc import Mapping
from typing import Any, ClassVar

import msgspec

from frontdesk import errors
from frontdesk.config.options import read_options
from frontdesk.contracts.secrets import Checks, Secret
from frontdesk.formats import http, webhooks
from frontdesk.model.confirmations import TOKEN, Settings

ABOVE = "confirm"
OWNER = "approver"
"""The name behind the credential that the service makes itself."""
TERMINAL = "local"
UNSIGNED = (
    "with confirm.callbacks, programs are told of decisions, and what they are told must be signed. Name the"
    " variable that has the secret, or its file with confirm.callback_secret_file."
)

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.@+-]{0,63}")
_ACCOUNT = re.compile(rf"{TERMINAL}|[a-z0-9][a-z0-9_-]*(@[^\s:]+)?:[^\s:](.*\S)?")


class TokenHolders(msgspec.Struct, frozen=True, kw_only=True):
    """Who has a token: people who decide, and agents that ask."""

    approvers: Mapping[str, Secret] = {}
    agents: Mapping[str, Secret] = {}
    accounts: Mapping[str, tuple[str, ...]] = {}
    """Who approvers are in the chats: ``ann = ["matrix:@ann:example.org"]``."""
    callback_secret: Secret | None = None
    """Signs what programs are told of decisions."""

    secret_checks: ClassVar[Checks] = {
        "approvers": http.check_credential,
        "agents": http.check_credential,
        "callback_secret": webhooks.secret_bytes,
    }

    def __post_init__(self) -> None:
        for kind, known in (("approvers", self.approvers), ("agents", self.agents)):
            for name in known:
                _check_name(kind, name)
        if unknown := self.accounts.keys() - self.approvers.keys() - {OWNER}:
            raise errors.InvalidSetting(
                key="confirm.accounts", value=min(unknown), allowed="names of approvers"
            )
        for account in (each for known in self.accounts.values() for each in known):
            if not _ACCOUNT.fullmatch(account):
                allowed = "names as in 'telegram:42', 'matrix:@ann:example.org' or 'telegram@second:42'"
                raise errors.InvalidSetting(key="confirm.accounts", value=account, allowed=allowed)
        if both := self.approvers.keys() & self.agents.keys():
            raise errors.InvalidSetting(
                key="confirm.agents", value=min(both), allowed="a name that no approver has"
            )


def _check_name(kind: str, name: str) -> None:
    if not _NAME.fullmatch(name):
        allowed = "names of a-z, A-Z, 0-9 and '_.@+-', at most 64 characters"
        raise errors.InvalidSetting(key=f"confirm.{kind}", value=name, allowed=allowed)
    if name == OWNER:
        allowed = f"another name: {OWNER!r} has the credential that the service makes"
        raise errors.InvalidSetting(key=f"confirm.{kind}", value=name, allowed=allowed)


class Confirm(Settings, frozen=True, kw_only=True):
    """What is set for confirmations: of the service itself, and of where and by whom it is reached."""

    enabled: bool = True
    host: str = "127.0.0.1"
    port: int = 6000
    token_env: str = "CONFIRMATION_TOKEN"
    link_for: str | None = None
    """The approver whose the home channels are."""
    people: TokenHolders = TokenHolders()


def read(fields: Mapping[str, Any], table: Mapping[str, Any]) -> Confirm:
    """The record, of the settings and of the tables that name people."""
    people = read_options(TokenHolders, table, (ABOVE,), fields)
    if fields["callbacks"] and people.callback_secret is None:
        raise errors.MissingSetting(key="confirm.callback_secret_env", why=UNSIGNED)
    link_for = fields["link_for"]
    if link_for is not None and link_for != OWNER and link_for not in people.approvers:
        raise errors.InvalidSetting(key="confirm.link_for", value=link_for, allowed="the name of an approver")
    return Confirm(**fields, persons=_persons(people), people=people)


def _persons(people: TokenHolders) -> tuple[frozenset[str], ...]:
    """The owner's token and terminal are one person; so are an approver's token and accounts."""
    own = (TERMINAL, *people.accounts.get(OWNER, ()))
    accounts = {**people.accounts, OWNER: own}
    return tuple(frozenset({f"{TOKEN}{name}", *known}) for name, known in accounts.items())
