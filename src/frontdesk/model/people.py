"""People: who is asking, and what they may see."""

from collections.abc import Collection, Mapping

import msgspec

from frontdesk import errors
from frontdesk.model import keys, whatsapp
from frontdesk.model.platforms import PROGRAMS, Platform
from frontdesk.model.sessions import Session
from frontdesk.model.sources import ChatType, SessionSource, readable


class Principal(msgspec.Struct, frozen=True, kw_only=True):
    """A person as one account of ours knows them."""

    platform: Platform
    user_id: str
    account: str | None = None

    @property
    def id(self) -> str:
        head = f"{self.platform}@{keys.encode_part(self.account)}" if self.account else str(self.platform)
        return f"{head}:{keys.encode_part(self.user_id)}"

    @classmethod
    def read(cls, name: str) -> "Principal":
        """The one with this id. InvalidInput for what is none."""
        place, _, person = plain_name(name.strip()).partition(":")
        platform, at, account = place.partition("@")
        known = Platform.parse(platform)
        try:
            user_id, own = keys.decode_part(person), keys.decode_part(account)
        except UnicodeDecodeError:
            user_id = own = ""
        if known is None or not user_id or bool(at) != bool(own) or user_id != readable(user_id):
            why = "write PLATFORM:ID or PLATFORM@ACCOUNT:ID, as in telegram:42"
            raise errors.InvalidInput(what=f"The name {name[:100]!r}", why=why)
        return cls(platform=known, user_id=user_id, account=own or None)

    @classmethod
    def of(cls, source: SessionSource, aliases: Mapping[str, str] | None = None) -> "Principal | None":
        """The person behind a message; a WhatsApp direct chat is named after them."""
        chat, person = keys.identities(source, aliases)
        if not person and source.chat_type is ChatType.DM and source.platform is whatsapp.PLATFORM:
            person = chat
        if not person:
            return None
        # Whoever comes with a pass is the same one at every endpoint: no other user there has a colon.
        account = None if source.platform is PROGRAMS and ":" in person else source.account
        return cls(platform=source.platform, user_id=person, account=account)


class Author(msgspec.Struct, frozen=True, kw_only=True):
    """Who writes into a conversation from elsewhere: from the page, or through the HTTP API."""

    id: str
    """A visitor's."""
    name: str
    is_guest: bool = False
    """The conversation is somebody else's."""
    administers: bool = False
    """They are an administrator, and this is an order that shows nobody anything of others."""


def name_of(source: SessionSource, aliases: Mapping[str, str]) -> str:
    """Who is behind a message, as votes and requests name them: the owner's terminal has no other name."""
    principal = Principal.of(source, aliases)
    return principal.id if principal else str(source.platform)


def names_of(source: SessionSource) -> frozenset[str]:
    """Every name that a message itself has for its sender: a platform may tell two ids of one person."""
    ids = (source.user_id, source.user_id_alt)
    told = (Principal(platform=source.platform, user_id=each, account=source.account) for each in ids if each)
    return frozenset({name_of(source, {}), *(principal.id for principal in told)})


def place_of_name(name: str) -> str:
    """The account of ours that knows somebody by a principal's id."""
    return name.partition(":")[0]


def plain_name(name: str) -> str:
    """A name as a principal's id has it, however somebody wrote it: of a WhatsApp id the number alone."""
    place, colon, written = name.partition(":")
    try:
        person = keys.decode_part(written)
    except UnicodeDecodeError:
        return name
    if place.partition("@")[0] == whatsapp.PLATFORM:
        person = whatsapp.normalize_whatsapp_identifier(person)
    return f"{place}{colon}{keys.encode_part(person)}"


def bare_name(name: str) -> str:
    """A name without which account of ours knows somebody by it."""
    place, colon, person = plain_name(name).partition(":")
    return f"{place.partition('@')[0]}{colon}{person}" if colon else name


class Person(msgspec.Struct, frozen=True):
    """Somebody by every name of theirs. What surely is theirs permits, what may be counts against them."""

    names: frozenset[str]
    """Those that are theirs, as plain names."""
    perhaps: frozenset[str]
    """Bare names: of those, of what was theirs until lately, and of the same id on other accounts of ours."""

    @classmethod
    def of(cls, names: Collection[str]) -> "Person":
        """Somebody of whom no more is known."""
        return cls(frozenset(map(plain_name, names)), frozenset(map(bare_name, names)))

    def goes_by(self, *names: str) -> bool:
        """Whether one of these is surely theirs, however it is written."""
        return any(plain_name(name) in self.names for name in names)

    def may_be(self, name: str | None) -> bool:
        """Whether it may be theirs."""
        return name is not None and bare_name(name) in self.perhaps


class Viewer(msgspec.Struct, frozen=True):
    """Whose sessions a question may touch: those of these owners, or everybody's for an administrator."""

    owners: frozenset[str]
    administrator: bool = False
    chat: str | None = None
    """The key of the one conversation whose sessions are shown, where others read along; None for all."""

    @classmethod
    def everything(cls) -> "Viewer":
        """The administrator's view; never made from a message."""
        return cls(frozenset(), administrator=True)

    def with_owners(self, owners: frozenset[str]) -> "Viewer":
        """The same view, of what belongs to these as well."""
        return Viewer(self.owners | owners, administrator=self.administrator, chat=self.chat)

    def sees(self, owner: str) -> bool:
        return self.administrator or owner in self.owners

    def shows(self, session: Session) -> bool:
        """Whether the session may be shown to the viewer, in the chat where they look."""
        return self.sees(session.owner) and self.chat in (None, session.entry.session_key)


def owner_of(source: SessionSource, where: keys.Address, aliases: Mapping[str, str] | None = None) -> str:
    """Who a new session belongs to: the person, or the conversation itself when people share it or nobody is
    named."""
    principal = None if where.shared else Principal.of(source, aliases)
    return principal.id if principal else where.key


def party_of(source: SessionSource, where: keys.Address) -> str:
    """Whose turns count together when there are more than places: a person's in all their chats, a group's in
    all its threads."""
    mark, which = ("#", source.parent_chat_id or where.chat) if where.shared else (":", where.person)
    return f"{where.place}{mark}{keys.encode_part(which)}" if which else where.key


def viewer_of(source: SessionSource, where: keys.Address, aliases: Mapping[str, str] | None = None) -> Viewer:
    """What the sender of a message may see: their own sessions, and what belongs to this chat when it is
    shared or theirs alone."""
    principal = Principal.of(source, aliases)
    of_chat = where.shared or principal is None or source.chat_type is ChatType.DM
    return Viewer(frozenset(({where.key} if of_chat else set()) | ({principal.id} if principal else set())))
