"""Visitors: who comes to the pages and the HTTP API, what they see there and what they may do."""

from enum import StrEnum
from urllib.parse import quote

import msgspec

from frontdesk import errors
from frontdesk.model.access import Role
from frontdesk.model.confirmations import Caller, CallerKind
from frontdesk.model.people import Principal, Viewer
from frontdesk.model.platforms import PAGE, PROGRAMS


class Need(StrEnum):
    """What a visitor must be able to do, to be answered."""

    LOOK = "look"
    """See what is theirs: everybody who is in may. What is shown depends on whose it is."""
    LOOK_AT_ALL = "look_at_all"
    """See what is nobody's own: nodes, people, settings, the audit log."""
    LOOK_AT_REQUESTS = "look_at_requests"
    """See what is asked for."""
    ACT = "act"
    """Change what is theirs."""
    DECIDE = "decide"
    """Say yes or no to what is asked for."""
    ADMINISTER = "administer"
    """Change what is nobody's own."""


LOOKS = {Need.LOOK, Need.LOOK_AT_ALL, Need.LOOK_AT_REQUESTS}
MAY: dict[Role, frozenset[Need]] = {
    Role.VIEWER: frozenset(LOOKS),
    Role.USER: frozenset({Need.LOOK, Need.ACT}),
    Role.APPROVER: frozenset({Need.LOOK, Need.ACT, Need.LOOK_AT_REQUESTS, Need.DECIDE}),
    Role.ADMINISTRATOR: frozenset(Need),
}


class Visitor(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody whose credential was checked at the door of the public port."""

    id: str
    """A principal's id, ``token:NAME`` with a token of the settings, or ``pass:NAME`` for somebody whom no
    platform knows."""
    name: str
    role: Role
    people: frozenset[str] = frozenset()
    """Every other name of the same person."""

    @property
    def principal(self) -> Principal:
        """As whom they talk on the page itself."""
        return _on_page(self.id)

    @property
    def user(self) -> str:
        """As whom programs talk for them over HTTP: no other user has a colon in their name."""
        return _as_user(self.id)

    @property
    def names(self) -> frozenset[str]:
        """Every name of theirs, those on the page and over HTTP included."""
        return self.people | names_here(self.id)

    @property
    def viewer(self) -> Viewer:
        """Whose rows they see."""
        if Need.LOOK_AT_ALL in MAY[self.role]:
            return Viewer.everything()
        return Viewer(self.names)

    @property
    def caller(self) -> Caller:
        """Who they are to the confirmation service."""
        kind = CallerKind.APPROVER if self.may(Need.DECIDE) else CallerKind.ANYBODY
        return Caller(id=self.id, kind=kind, people=self.names - {self.id})

    def may(self, need: Need) -> bool:
        return need in MAY[self.role]

    def require(self, need: Need) -> None:
        """NotAllowed."""
        if not self.may(need):
            takes = [role for role in Role if need in MAY[role]]
            told = f"one of the roles {', '.join(takes)}" if takes[1:] else f"the role {takes[0]}"
            raise errors.NotAllowed(who=self.id, rule=f"this takes {told}")


def names_here(name: str) -> frozenset[str]:
    """A name, with those that whoever comes in by it has on the page and over HTTP."""
    program = Principal(platform=PROGRAMS, user_id=_as_user(name))
    return frozenset({name, _on_page(name).id, program.id})


def _on_page(name: str) -> Principal:
    return Principal(platform=PAGE, user_id=name)


def _as_user(name: str) -> str:
    return quote(name, safe=":@")
