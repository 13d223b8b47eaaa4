"""The reception: who may come in over HTTP, as plain data. Each public method is a question that commands
ask, through the owner's socket or of the store itself, and programs over HTTP."""

from collections.abc import Callable
from copy import copy
from datetime import timedelta
from typing import Annotated, Self, TypedDict

from frontdesk import errors
from frontdesk.app.office.plain import among, chosen, picked
from frontdesk.config.confirm import OWNER
from frontdesk.flow.passes import PassBook
from frontdesk.model import pages, passes
from frontdesk.model.access import Role
from frontdesk.model.confirmations import TOKEN
from frontdesk.model.passes import Pass, PassKind
from frontdesk.model.platforms import TERMINAL
from frontdesk.model.visitors import Visitor
from frontdesk.stores.columns import to_micros

LATEST = 2**62
OWN = "owner"
"""What their passes are called."""
THE_OWNER = f"{TOKEN}{OWNER}"
"""By that name the owner votes, too, with whichever credential."""


class GivenPass(TypedDict):
    """A pass without its secret."""

    id: str
    kind: str
    name: str
    role: str
    person: str
    created_at: str
    expires_at: str
    revoked_at: str | None
    used_at: str | None
    """To the minute."""


class PassPage(TypedDict):
    items: list[GivenPass]
    next: str | None


class GivenToken(GivenPass):
    token: str
    """Shown this once."""


class GivenLink(GivenPass):
    url: str
    """Where the browser that opens it first is signed in."""


class Reception:
    """Whoever can read the database may let anybody in; a visitor does so in their own name."""

    def __init__(self, book: PassBook, address: Callable[[], str | None] = lambda: None) -> None:
        """``address`` tells where browsers reach the pages, while they do."""
        self._book = book
        self._address = address
        self._by = str(TERMINAL)

    def seen_by(self, visitor: Visitor) -> Self:
        seen = copy(self)
        seen._by = visitor.id
        return seen

    async def make_link(
        self,
        role: Annotated[str, among(Role)] = Role.ADMINISTRATOR,
        person: str | None = None,
        name: str | None = None,
        minutes: int = passes.LINK_MINUTES,
    ) -> GivenLink:
        """A link that signs one browser in, once. Without a name it is called after the person or role."""
        address = self._address()
        if address is None:
            raise errors.NoPages()
        lasts = timedelta(minutes=passes.check_most("minutes", minutes, passes.MOST_MINUTES))
        given, code = await self._give(PassKind.LINK, name, role, person, lasts)
        return {**_plain(given), "url": f"{address}/login#{code}"}

    async def make_token(
        self,
        name: str,
        role: Annotated[str, among(Role)],
        person: str | None = None,
        days: int = passes.TOKEN_DAYS,
    ) -> GivenToken:
        """A token for the API. For the roles user and approver, say whose it is."""
        lasts = timedelta(days=passes.check_most("days", days, passes.MOST_DAYS))
        given, token = await self._give(PassKind.TOKEN, name, role, person, lasts)
        return {**_plain(given), "token": token}

    async def _give(
        self, kind: PassKind, name: str | None, role: str, person: str | None, lasts: timedelta
    ) -> tuple[Pass, str]:
        known = chosen("role", Role, role)
        is_own = known is Role.ADMINISTRATOR and person is None
        usual = OWN if is_own else passes.usual_name(known, person)
        named = passes.check_name(usual if name is None else name)
        whose = passes.person_for(known, person, named, THE_OWNER)
        return await self._book.issue(kind, named, known, whose, lasts, by=self._by)

    async def list_passes(
        self, after: str | None = None, limit: int = pages.PAGE_ITEMS, over: bool = False
    ) -> PassPage:
        """Tokens, links and pages that hold, the latest first; or those that are over, too."""
        most, place = pages.check_items(limit), pages.read_place(after, LATEST)
        shown, goes_on = pages.cut(list(await self._book.list(most + 1, place, over=over)), most)
        last = shown[-1] if goes_on else None
        return {
            "items": [_plain(each) for each in shown],
            "next": pages.place(to_micros(last.created_at), last.id) if last else None,
        }

    async def revoke_pass(self, name: str) -> bool:
        """End a token by its name, or any pass by its id, and the pages that were begun with it; False when
        nothing of that name holds."""
        return await self._book.revoke(name, by=self._by)


def _plain(given: Pass) -> GivenPass:
    told: GivenPass = picked(given, *GivenPass.__annotations__)  # type: ignore[assignment]
    return told
