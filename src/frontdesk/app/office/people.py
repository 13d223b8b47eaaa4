"""What is asked about people: who is let in, who waits."""

from frontdesk.app.office.counters import Counter
from frontdesk.app.office.plain import Plain, chosen, plain
from frontdesk.model import access


class PeopleCounter(Counter):
    async def list_people(self) -> list[Plain]:
        """Everybody who was let in by an administrator; the settings may let in others."""
        return [plain(grant) for grant in await self._people.list_people(self._owner)]

    async def pending_people(self) -> list[Plain]:
        """Who waits to be let in."""
        return [plain(pairing) for pairing in await self._people.pending(self._owner)]

    async def approve_person(self, code: str, role: str = access.Role.USER) -> Plain:
        """Let in whom the code was shown to."""
        return plain(await self._people.approve(code, self._owner, chosen(access.Role, role)))

    async def revoke_person(self, principal: str) -> bool:
        """Somebody who was let in is a stranger again; False when they were not."""
        return await self._people.revoke(principal, self._owner)
