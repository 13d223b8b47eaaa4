"""Giving out passes, knowing them again, and ending them."""

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta

import msgspec

from frontdesk import errors
from frontdesk.contracts.clock import Clock
from frontdesk.contracts.confirmations import Persons
from frontdesk.logs import get_logger
from frontdesk.model import passes
from frontdesk.model.access import Role
from frontdesk.model.passes import Pass, PassKind
from frontdesk.model.visitors import Visitor
from frontdesk.stores.store import Store

log = get_logger(__name__)


class Admitted(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody whose pass holds."""

    held: Pass
    visitor: Visitor


class BegunPage(msgspec.Struct, frozen=True, kw_only=True):
    """A page, with what its browser keeps: nobody is told again."""

    held: Pass
    secret: str
    proof: str


class PassBook:
    """All passes of one store."""

    def __init__(self, store: Store, clock: Clock, persons: Persons = ()) -> None:
        """``persons`` are names of one person each, by the settings."""
        self._kept = store.passes
        self._people = store.people
        self._clock = clock
        self._persons = persons
        self._ended = 0

    @property
    def changes(self) -> int:
        """How often it was changed here who may come in, or as whom."""
        return self._ended + self._people.changes

    async def issue(
        self, kind: PassKind, name: str, role: Role, person: str, lasts: timedelta, *, by: str
    ) -> tuple[Pass, str]:
        """A token or a link, and its secret. PassTaken for a token with the name of another one."""
        secret = passes.new_secret(kind)
        given = self._new(kind, name, role, person, lasts, passes.digest_of(secret))
        await self._kept.add(given, given.created_at, by=by)
        log.info("pass_made", **_facts(given), by=by)
        return given, secret

    async def redeem(self, secret: str) -> BegunPage | None:
        """A link becomes a page, once; None when it cannot any more."""
        now, own, proof = self._clock.now(), passes.new_secret(), passes.new_secret()
        held = await self._kept.redeem(
            passes.digest_of(secret),
            digest=passes.digest_of(own),
            proof=passes.digest_of(proof),
            now=now,
            until=now + timedelta(seconds=passes.PAGE_SECONDS),
        )
        return BegunPage(held=held, secret=own, proof=proof) if held else None

    async def begin(
        self,
        visitor: Visitor,
        *,
        bound_to: str | None = None,
        parent: Pass | None = None,
    ) -> BegunPage:
        """A page for somebody who has proven who they are: with a token of the settings, which it is then
        bound to, with a pass, which it ends with, or in any other way. NotAllowed when that has ended."""
        own, proof = passes.new_secret(), passes.new_secret()
        lasts = timedelta(seconds=passes.PAGE_SECONDS)
        if parent:
            lasts = min(lasts, parent.expires_at - self._clock.now())
        made = self._new(PassKind.PAGE, visitor.name, visitor.role, visitor.id, lasts, passes.digest_of(own))
        held = msgspec.structs.replace(
            made, proof=passes.digest_of(proof), bound_to=bound_to, parent=parent.id if parent else None
        )
        await self._kept.add(held, held.created_at, by=visitor.id)
        return BegunPage(held=held, secret=own, proof=proof)

    async def recognise(self, secret: str, *kinds: PassKind) -> Admitted | None:
        """Whose pass of these kinds it is, if it holds."""
        if not passes.may_be_secret(secret):
            return None
        now = self._clock.now()
        found = await self._kept.find(passes.digest_of(secret), self._persons, now)
        if found is None or not found[0].fits(secret) or found[0].kind not in kinds:
            return None
        held, person = found
        await self._note_use(held, now)
        visitor = Visitor(id=held.person, name=held.name, role=held.role, people=person.names - {held.person})
        return Admitted(held=held, visitor=visitor)

    async def names_of(self, names: Collection[str]) -> frozenset[str]:
        """Every name of the person who goes by these."""
        return (await self._people.behind(names, self._persons, self._clock.now())).names

    async def _note_use(self, held: Pass, now: datetime) -> None:
        """Lazily: that somebody was here keeps nobody out where it cannot be written."""
        if held.kind is PassKind.LINK or (held.used_at and now - held.used_at < passes.USED_EVERY):
            return
        try:
            await self._kept.touch(held.id, now)
        except errors.StoreError as error:
            log.warning("pass_use_not_noted", id=held.id, why=str(error))

    async def revoke(self, name: str, *, by: str) -> bool:
        """End a token by its name, or any pass by its id; False when nothing of that name holds."""
        ended = await self._kept.revoke(name, self._clock.now(), by=by)
        if ended:
            self._ended += 1
            log.info("pass_revoked", name=name, by=by)
        return ended

    async def list(
        self, limit: int, after: tuple[int, str] | None = None, *, over: bool = False
    ) -> Sequence[Pass]:
        """Those that hold, or all that are remembered, the latest first."""
        return await self._kept.list(limit, self._clock.now(), after, over=over)

    def _new(
        self, kind: PassKind, name: str, role: Role, person: str, lasts: timedelta, digest: bytes
    ) -> Pass:
        now = self._clock.now()
        return Pass(
            id=passes.new_id(),
            kind=kind,
            name=name,
            role=role,
            person=person,
            digest=digest,
            created_at=now,
            expires_at=now + lasts,
        )


def _facts(given: Pass) -> dict[str, object]:
    return {"id": given.id, "kind": str(given.kind), "name": given.name, "role": str(given.role)}
