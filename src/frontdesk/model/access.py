"""Who is let in, by which rule, and as what. Everybody else is not."""

import re
from collections.abc import Collection, Mapping
from datetime import datetime
from enum import StrEnum
from functools import lru_cache, partial
from typing import NamedTuple

import msgspec
from msgspec.structs import force_setattr, replace

from frontdesk import errors
from frontdesk.model import inputs, keys, whatsapp
from frontdesk.model.people import Principal
from frontdesk.model.platforms import TERMINAL, Platform
from frontdesk.model.sources import ChatType, SessionSource, readable

EVERYBODY = "*"
CHAT = "chat:"
ROLE = "role:"
PERSON = ""
LISTS_KEPT = 256

LISTS = ("allow", "approvers", "administrators", "block")
OF_PEOPLE = ("approvers", "administrators")
"""Whoever is named there may do more than talk: nobody is, but by their own id."""

_CROWD = re.compile(r"(?:[^:]+:)?(?:\*|chat:.*|role:.*)", re.DOTALL)


class Role(StrEnum):
    """What somebody may do; each may also do what those before it may, but one who only looks sees more than
    others, and does less."""

    VIEWER = "viewer"
    """Sees everything on the pages and changes nothing; in a chat nobody is one."""
    USER = "user"
    APPROVER = "approver"
    ADMINISTRATOR = "administrator"

    def covers(self, wanted: "Role") -> bool:
        if Role.VIEWER in (self, wanted):
            return self in (wanted, Role.ADMINISTRATOR)
        return RANKS[self] >= RANKS[wanted]


RANKS: Mapping[Role, int] = {role: rank for rank, role in enumerate(Role)}
CHAT_ROLES = tuple(role for role in Role if role is not Role.VIEWER)
"""Those that somebody can have in a chat."""


def check_in_chats(role: Role) -> Role:
    """What somebody can be in a chat. InvalidInput for one who only looks."""
    if role not in CHAT_ROLES:
        why = "in a chat nobody only looks; for the pages, make one with: frontdesk login --role viewer"
        raise errors.InvalidInput(what=f"The role {role}", why=why)
    return role


class AccessRule(StrEnum):
    """Why somebody was let in or refused."""

    LOCAL = "local"
    ADMINISTRATORS = "administrators"
    APPROVERS = "approvers"
    PAIRED = "paired"
    ALLOW_LIST = "allow_list"
    CHANNEL_CREDENTIAL = "channel_credential"
    ROLE_AUTHORIZED = "role_authorized"
    UPSTREAM_RELAY = "upstream_relay"
    ALLOWED_CHAT = "allowed_chat"
    EVERYBODY = "everybody"
    BLOCKED = "blocked"
    BOT = "bot"
    NAMELESS = "nameless"
    STRANGER = "stranger"


class Strangers(StrEnum):
    """What somebody who is not let in hears."""

    SILENCE = "silence"
    ANSWER = "answer"
    PAIR = "pair"


class Access(msgspec.Struct, frozen=True, kw_only=True):
    """Who may use one platform; ``Access()`` alone lets nobody in.

    An entry is a user id, ``*`` for everybody, ``chat:`` and the id of a chat for everybody in it, or
    ``role:`` and the id of a role that the platform gives people. Where the platform has several accounts of
    ours, it counts for one of them only when it names it, with the id written as in a principal's:
    ``telegram@second:42``. A block counts for every account.
    """

    allow: tuple[str, ...] = ()
    approvers: tuple[str, ...] = ()
    administrators: tuple[str, ...] = ()
    block: tuple[str, ...] = ()
    strangers: Strangers = Strangers.SILENCE
    allow_bots: bool = False

    def __post_init__(self) -> None:
        for name in LISTS:
            force_setattr(self, name, _entries(name, getattr(self, name)))
        for name in OF_PEOPLE:
            if any(_CROWD.fullmatch(entry) for entry in getattr(self, name)):
                allowed = "a list of user ids: neither everybody nor a whole chat or role"
                raise errors.InvalidSetting(key=name, value=getattr(self, name), allowed=allowed)
        force_setattr(self, "strangers", inputs.read_choice("strangers", self.strangers, Strangers))
        inputs.check_flags(self, "allow_bots")

    def of_account(self, platform: str, account: str, others: "Access | None" = None) -> "Access":
        """The same for one of our accounts alone, whose table it stands in; ``others`` is what the platform's
        says, which may name the account, too, and blocks for all of them."""
        known = others or Access()
        lists = {}
        for name in LISTS:
            own = [_of_account(name, platform, account, entry) for entry in getattr(self, name)]
            lists[name] = (*own, *getattr(known, name))
        return replace(self, **lists)


def _of_account(name: str, platform: str, account: str, entry: str) -> str:
    [(named, kind, person)] = _listed(platform, (entry,))
    if named not in (None, account):
        allowed = f"ids of this account: {account}"
        raise errors.InvalidSetting(key=name, value=entry, allowed=allowed)
    text = kind if kind == EVERYBODY else f"{kind}{keys.encode_part(person)}"
    return f"{keys.account_place(platform, account)}:{text}"


def _entries(name: str, value: object) -> tuple[str, ...]:
    ids = isinstance(value, list | tuple) and all(isinstance(each, str | int) for each in value)
    if not ids or any(isinstance(each, bool) for each in value):  # type: ignore[attr-defined]
        raise errors.InvalidSetting(key=name, value=value, allowed="a list of ids")
    texts = tuple(str(each).strip() for each in value)  # type: ignore[attr-defined]
    for text in texts:
        if not text.removeprefix(CHAT).removeprefix(ROLE) or text != readable(text):
            raise errors.InvalidSetting(key=name, value=text, allowed="ids that are not empty")
    return texts


class Grant(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody was let in by an administrator."""

    principal: str
    platform: str
    role: Role
    granted_at: datetime
    granted_by: str
    name: str | None = None
    """What they called themselves then, cleaned; anybody can be called anything."""

    def under(self, principal: str) -> "Grant":
        """The same for somebody's other name."""
        return replace(self, principal=principal)


class AccessVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """Whether the sender of a message is let in, why, and as what."""

    allowed: bool
    rule: AccessRule
    place: str
    """Which account of ours on which platform this is about."""
    role: Role | None = None
    principal: Principal | None = None
    strangers: Strangers = Strangers.SILENCE
    """What they may hear when they are not let in."""

    @property
    def who(self) -> str:
        """The sender, or the place when nobody is named."""
        return self.principal.id if self.principal else self.place

    def covers(self, wanted: Role) -> bool:
        """Whether they may do what this role may."""
        return self.allowed and self.role is not None and self.role.covers(wanted)

    def require(self, wanted: Role) -> None:
        """Refuse what this role may not do."""
        if not self.covers(wanted):
            raise errors.NotAllowed(who=self.who, rule=f"this takes the role {wanted}")


Entries = frozenset[tuple[str | None, str, str]]
"""Whom lists name: the account of ours that it counts for, what is named and its id, which may look like an
entry of another kind."""


class Subject(NamedTuple):
    """The sender as lists may name them."""

    names: Entries
    chats: Entries
    roles: Entries
    everybody: Entries


def decide(
    source: SessionSource,
    authenticates: bool,
    access: Access,
    grants: Collection[Grant] = (),
    *,
    principal: Principal | None = None,
    aliases: Mapping[str, str] | None = None,
    reliable_ids: bool = True,
) -> AccessVerdict:
    """Whether the sender is let in: by the most powerful rule that fits, and by none when blocked.

    ``authenticates`` says that the channel lets nobody through without a credential of ours. ``aliases``
    holds every name of the sender on WhatsApp; ``principal`` is who it is, where that is known by now. Where
    senders can claim any id, nobody is more than a user.
    """
    principal = principal or Principal.of(source, aliases)
    verdict = partial(AccessVerdict, place=keys.place_of(source), principal=principal)
    if source.platform is TERMINAL and not source.delivered_via_upstream_relay:
        return verdict(allowed=True, rule=AccessRule.LOCAL, role=Role.ADMINISTRATOR)
    who = _subject(source, principal, aliases)
    if access.block and _blocked(source.platform, who, access):
        return verdict(allowed=False, rule=AccessRule.BLOCKED)
    own = [grant for grant in grants if principal and grant.principal == principal.id]
    if ways := _ways(source, authenticates, who, access, own):
        role = max(ways, key=RANKS.__getitem__)
        return verdict(allowed=True, rule=ways[role], role=role if reliable_ids else Role.USER)
    if source.is_bot:
        return verdict(allowed=False, rule=AccessRule.BOT)
    # Only a person who writes to us in private may hear that they are refused.
    hears = access.strangers if principal and source.chat_type is ChatType.DM else Strangers.SILENCE
    rule = AccessRule.STRANGER if principal else AccessRule.NAMELESS
    return verdict(allowed=False, rule=rule, strangers=hears)


def _ways(
    source: SessionSource, authenticates: bool, who: Subject, access: Access, grants: Collection[Grant]
) -> dict[Role, AccessRule]:
    """The way in to each role that the sender has, by name first; a bot that nobody named has no other than
    the channel's credential."""
    admits = not source.is_bot or access.allow_bots
    listed = _listed(source.platform, access.allow)
    approvers = _listed(source.platform, access.approvers)
    administrators = _listed(source.platform, access.administrators)
    by_role = source.role_authorized or not listed.isdisjoint(who.roles)
    user = Role.USER
    fits = (
        (AccessRule.ADMINISTRATORS, Role.ADMINISTRATOR, not administrators.isdisjoint(who.names)),
        (AccessRule.APPROVERS, Role.APPROVER, not approvers.isdisjoint(who.names)),
        *[(AccessRule.PAIRED, grant.role, True) for grant in grants],
        (AccessRule.ALLOW_LIST, user, not listed.isdisjoint(who.names)),
        (AccessRule.CHANNEL_CREDENTIAL, user, authenticates),
        (AccessRule.ROLE_AUTHORIZED, user, admits and by_role),
        (AccessRule.UPSTREAM_RELAY, user, admits and source.delivered_via_upstream_relay),
        (AccessRule.ALLOWED_CHAT, user, admits and not listed.isdisjoint(who.chats)),
        (AccessRule.EVERYBODY, user, admits and not listed.isdisjoint(who.everybody)),
    )
    return {role: rule for rule, role, holds in reversed(fits) if holds}


def _blocked(platform: Platform, who: Subject, access: Access) -> bool:
    """For this account, or for every one of the platform's."""
    entries = who.names | who.chats | who.roles | who.everybody
    anywhere = {(None, kind, name) for _, kind, name in entries}
    return not _listed(platform, access.block).isdisjoint(entries | anywhere)


def _subject(
    source: SessionSource, principal: Principal | None, aliases: Mapping[str, str] | None
) -> Subject:
    chat = source.chat_id
    names = {principal.user_id} if principal else set()
    if source.platform is whatsapp.PLATFORM:
        chat, _ = keys.identities(source, aliases)
        names |= {name for name, person in (aliases or {}).items() if person in names}
    else:
        names |= {source.user_id or "", source.user_id_alt or ""}
    chats = {chat, source.chat_id_alt, source.parent_chat_id}
    account = source.account or None
    return Subject(
        names=frozenset([(account, PERSON, name) for name in names if name]),
        chats=frozenset([(account, CHAT, each) for each in chats if each]),
        roles=frozenset([(account, ROLE, each) for each in source.roles]),
        everybody=frozenset([(account, EVERYBODY, "")]),
    )


@lru_cache(maxsize=LISTS_KEPT)
def _listed(platform: str, entries: tuple[str, ...]) -> Entries:
    form = re.compile(rf"{re.escape(platform)}(?:@([^:]+))?:(.+)", re.DOTALL)
    listed = set()
    for entry in entries:
        found = form.fullmatch(entry)
        account = _read_id(found[1], encoded=True) if found and found[1] else None
        text = found[2] if found else entry
        crowd = EVERYBODY if text == EVERYBODY else PERSON
        kind = next((each for each in (CHAT, ROLE) if text.startswith(each)), crowd)
        name = _read_id(text.removeprefix(kind), encoded=found is not None)
        if kind == PERSON and platform == whatsapp.PLATFORM:
            name = whatsapp.normalize_whatsapp_identifier(name)
        listed.add((account, kind, name))
    return frozenset(listed)


def _read_id(text: str, *, encoded: bool) -> str:
    """The id; what decodes to no text is nobody's."""
    try:
        return keys.decode_part(text) if encoded else text
    except UnicodeDecodeError:
        return ""
