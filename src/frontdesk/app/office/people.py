"""What is asked about people: who is let in, who waits, who is the same person."""

from collections.abc import Sequence
from typing import Annotated, TypedDict, cast

from frontdesk.app.office.counters import LIST_LIMIT, Counter
from frontdesk.app.office.plain import among, chosen, picked, plain
from frontdesk.model import access, pages, people
from frontdesk.model.access import Grant, Role
from frontdesk.stores.columns import to_micros
from frontdesk.stores.people import LATEST

MOST_NAMES = 100


class LetIn(TypedDict):
    """Somebody whom an administrator has let in."""

    principal: str
    platform: str
    role: str
    granted_at: str
    granted_by: str
    name: str | None
    """What they called themselves then; anybody can be called anything."""


class PeoplePage(TypedDict):
    items: list[LetIn]
    next: str | None


class WaitingPerson(TypedDict):
    """Somebody who was shown a code, and waits for it to be typed."""

    kind: str
    principal: str
    platform: str
    created_at: str
    expires_at: str
    name: str | None


class PersonNames(TypedDict):
    """All names that somebody said are theirs."""

    person: str
    names: list[str]
    is_whole: bool
    """Whether these are all."""


class PersonNamesPage(TypedDict):
    items: list[PersonNames]
    next: str | None


class PlaceAccess(TypedDict):
    """Whom the settings let in at a platform, or at one account of ours there."""

    place: str
    allow: list[str]
    approvers: list[str]
    administrators: list[str]
    block: list[str]
    strangers: str
    allow_bots: bool


class PeopleCounter(Counter):
    async def list_people(self, after: str | None = None, limit: int = LIST_LIMIT) -> PeoplePage:
        """Everybody who was let in by an administrator, the latest first; the settings may let in others."""
        most = pages.check_items(limit)
        place = pages.read_place(after, LATEST)
        shown, goes_on = pages.cut(await self._store.people.list_grants(most + 1, place), most)
        last = shown[-1] if goes_on else None
        return {
            "items": [_let_in(grant) for grant in shown],
            "next": pages.place(to_micros(last.granted_at), last.principal) if last else None,
        }

    async def pending_people(self) -> list[WaitingPerson]:
        """Who waits to be let in; of each platform a few at most."""
        waiting = await self._people.pending(self._owner)
        return [cast(WaitingPerson, plain(pairing)) for pairing in waiting]

    async def approve_person(self, code: str, role: Annotated[str, among(Role)] = Role.USER) -> LetIn:
        """Let in whom the code was shown to."""
        return _let_in(await self._people.approve(code, self._by, _role(role)))

    async def refuse_person(self, principal: str) -> bool:
        """Somebody who waits is not let in; False when they did not wait."""
        return await self._people.refuse(principal, self._by)

    async def allow_person(self, principal: str, role: Annotated[str, among(Role)] = Role.USER) -> LetIn:
        """Let somebody in without a code, or change what they may do: by the name that a platform has for
        them, like `telegram:42`."""
        who = people.Principal.read(principal)
        return _let_in(await self._people.grant(who, _role(role), self._by))

    async def revoke_person(self, principal: str) -> bool:
        """Somebody who was let in is a stranger again, without links, codes and passes; False when they had
        nothing of it."""
        return await self._people.revoke(principal, self._by)

    async def list_links(self, after: str | None = None, limit: int = LIST_LIMIT) -> PersonNamesPage:
        """People who have several names: the first 100, with `is_whole` false where there are more."""
        most = pages.check_items(limit)
        _, last = pages.read_place(after, 0)
        shown, goes_on = pages.cut(await self._store.people.list_links(most + 1, last), most)
        return {
            "items": [_names(person, names) for person, names in shown],
            "next": pages.place(0, shown[-1][0]) if goes_on else None,
        }

    async def unlink_person(self, principal: str) -> bool:
        """A name is nobody else's any more; False when it was not."""
        return await self._people.separate(principal, self._by)

    async def show_access(self) -> list[PlaceAccess]:
        """Whom the settings let in, and whom they keep out."""
        found = sorted(self._conversations.config.access.items())
        return [cast(PlaceAccess, {"place": place} | _lists(each)) for place, each in found]


def _names(person: str, names: Sequence[str]) -> PersonNames:
    return {"person": person, "names": list(names[:MOST_NAMES]), "is_whole": len(names) <= MOST_NAMES}


def _role(name: str) -> Role:
    return access.check_in_chats(chosen("role", Role, name))


def _let_in(grant: Grant) -> LetIn:
    return cast(LetIn, plain(grant))


def _lists(given: access.Access) -> dict[str, object]:
    return picked(given, *access.LISTS, "strangers", "allow_bots")
