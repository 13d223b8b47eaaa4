"""Who may talk to the agent: checks, the answer to strangers, pairing and linking."""

import math
import secrets
from collections import Counter
from collections.abc import Mapping
from datetime import datetime

from frontdesk import errors
from frontdesk.flow.service import Service, aliases_of
from frontdesk.formats import quoting
from frontdesk.logs import get_logger
from frontdesk.model import access, codes, inputs, people, whatsapp
from frontdesk.model.sources import ChatType, SessionSource

log = get_logger(__name__)

MOST_LISTED = 1_000
REFUSALS = (errors.InvalidInput, errors.Unroutable, errors.NotAllowed, errors.TooManyWaiting)
"""Why messages are not taken in."""
PERSON_BYTES = 12

ANSWER = "Hello! I only talk with people I know. Please ask whoever runs me to let you in."
OFFER = (
    "Hello! I only talk with people I know. To be let in, give this code to whoever runs me: {code}\n"
    "It counts for one hour."
)
FULL = (
    "Hello! I only talk with people I know, and too many are waiting to be let in."
    " Please ask whoever runs me, or write again in ten minutes."
)


class Authorization(Service):
    """Decides about everybody who writes to us, and lets people in for administrators."""

    async def check(
        self, source: SessionSource, authenticates: bool = False, *, reliable_ids: bool = True
    ) -> access.AccessVerdict:
        """Whether the sender is let in. It changes nothing; a refusal is counted and logged.

        The two flags are the channel's capabilities, and the source is as its adapter made it.
        """
        verdict = await self.look(source, authenticates, reliable_ids=reliable_ids)
        if not verdict.allowed:
            self.note(verdict)
        return verdict

    def note(self, refusal: access.AccessVerdict) -> None:
        """Somebody who has written is not let in."""
        self.refused[str(refusal.rule)] += 1
        log.info("sender_refused", who=refusal.who, rule=refusal.rule)

    async def look(
        self, source: SessionSource, authenticates: bool = False, *, reliable_ids: bool = True
    ) -> access.AccessVerdict:
        """Whether the sender would be let in: nobody has written."""
        aliases = await self._all_names(source) if source.platform is whatsapp.PLATFORM else {}
        principal = people.Principal.of(source, aliases)
        grant = await self._store.people.grant_of(principal.id) if principal else None
        return access.decide(
            source,
            authenticates,
            self._config.get_access(source.platform, source.account),
            [grant] if grant else [],
            principal=principal,
            aliases=aliases,
            reliable_ids=reliable_ids,
        )

    async def _all_names(self, source: SessionSource) -> Mapping[str, str]:
        """The learned WhatsApp names of this source, and all the other names of its person."""
        aliases = await aliases_of(self._store, source)
        principal = people.Principal.of(source, aliases)
        if principal is None:
            return aliases
        names = await self._store.aliases.names_of(principal.user_id)
        return {**aliases, **dict.fromkeys(names, principal.user_id)}

    async def answer_stranger(self, source: SessionSource, verdict: access.AccessVerdict) -> str | None:
        """What to tell somebody who was refused, if anything: at most once a day, and not to everybody at
        once."""
        principal = verdict.principal
        if verdict.allowed or principal is None or verdict.strangers is access.Strangers.SILENCE:
            return None
        code = codes.new_code()
        pairs = verdict.strangers is access.Strangers.PAIR
        offer = (self._pairing(codes.CodeKind.PAIR, principal, source), codes.seal(code)) if pairs else None
        meeting = await self._store.people.answer_stranger(
            principal.id, str(principal.platform), self._clock.now(), offer
        )
        if meeting is codes.Meeting.SILENT:
            return None
        if meeting is codes.Meeting.OFFERED:
            log.info("pairing_offered", who=principal.id)
            return OFFER.format(code=codes.shown(code))
        if pairs:
            log.warning("pairings_full", platform=str(principal.platform), who=principal.id)
        return FULL if pairs else ANSWER

    def _pairing(
        self, kind: codes.CodeKind, principal: people.Principal, source: SessionSource
    ) -> codes.Pairing:
        now = self._clock.now()
        return codes.Pairing(
            kind=kind,
            principal=principal.id,
            platform=str(principal.platform),
            created_at=now,
            expires_at=now + codes.VALID_FOR,
            name=quoting.clean_text(source.user_name or "").replace("\n", " ") or None,
        )

    async def approve(
        self,
        code: str,
        by: access.AccessVerdict,
        role: access.Role = access.Role.USER,
        *,
        within: str | None = None,
    ) -> access.Grant:
        """Let in whom the code was shown to, at any account of ours or within one. WrongCode, LockedOut, or
        NotAllowed for anybody but an administrator."""
        by.require(access.Role.ADMINISTRATOR)
        inputs.check_kind("code", code, str)
        access.check_in_chats(role)
        trial = await self._store.people.approve_pairing(
            code, role, place=by.place, by=by.who, now=self._clock.now(), within=within
        )
        if trial.grant is None:
            raise _refused(trial, by.place, self._clock.now())
        log.info("person_let_in", who=trial.grant.principal, role=role, by=by.who)
        return trial.grant

    async def pending(self, by: access.AccessVerdict, *, within: str | None = None) -> list[codes.Pairing]:
        """Who waits to be let in, at any account of ours or within one."""
        by.require(access.Role.ADMINISTRATOR)
        waiting = await self._store.people.pending_pairings(self._clock.now())
        return [each for each in waiting if within in (None, people.place_of_name(each.principal))]

    async def refuse(self, principal: str, by: access.AccessVerdict) -> bool:
        """Somebody who waits is not let in: their code counts no more. False when they did not wait."""
        by.require(access.Role.ADMINISTRATOR)
        refused = await self._store.people.refuse_pairing(principal, self._clock.now(), by=by.who)
        if refused:
            log.info("pairing_refused", who=principal, by=by.who)
        return refused

    async def grant(
        self, principal: people.Principal, role: access.Role, by: access.AccessVerdict
    ) -> access.Grant:
        """Let somebody in without a code, or change what they may do."""
        by.require(access.Role.ADMINISTRATOR)
        grant = access.Grant(
            principal=principal.id,
            platform=str(principal.platform),
            role=access.check_in_chats(access.Role(role)),
            granted_at=self._clock.now(),
            granted_by=by.who,
        )
        await self._store.people.grant(grant)
        log.info("person_let_in", who=grant.principal, role=role, by=by.who)
        return grant

    async def revoke(self, principal: str, by: access.AccessVerdict) -> bool:
        """Somebody who was let in is a stranger again, without links, codes and passes; what the settings
        allow them is not touched. False when they had nothing of it."""
        by.require(access.Role.ADMINISTRATOR)
        revoked = await self._store.people.revoke(principal, self._clock.now(), by=by.who)
        if revoked:
            log.info("person_revoked", who=principal, by=by.who)
        return revoked

    async def list_people(self, by: access.AccessVerdict, limit: int = MOST_LISTED) -> list[access.Grant]:
        """Everybody who was let in by an administrator, the latest first."""
        by.require(access.Role.ADMINISTRATOR)
        return await self._store.people.list_grants(inputs.check_limit(limit))

    async def separate(self, principal: str, by: access.AccessVerdict) -> bool:
        """Somebody is nobody else any more, whatever they said; False when they were not."""
        by.require(access.Role.ADMINISTRATOR)
        separated = await self._store.people.unlink(principal, self._clock.now(), by=by.who)
        if separated:
            log.info("people_unlinked", who=principal, by=by.who)
        return separated

    async def begin_link(self, source: SessionSource, verdict: access.AccessVerdict) -> str:
        """A code to be typed from another account of the same person; shown in private alone."""
        principal = _somebody(verdict)
        if source.chat_type is not ChatType.DM:
            raise errors.NotAllowed(who=verdict.who, rule="codes are shown in private chats alone")
        code = codes.new_code()
        pairing = self._pairing(codes.CodeKind.LINK, principal, source)
        await self._store.people.begin_pairing(pairing, codes.seal(code), self._clock.now())
        return codes.shown(code)

    async def link(self, code: str, verdict: access.AccessVerdict) -> frozenset[str]:
        """Whoever types the code and whom it was shown to are one person from now on; all that they are."""
        principal = _somebody(verdict)
        inputs.check_kind("code", code, str)
        person = secrets.token_hex(PERSON_BYTES)
        trial = await self._store.people.link(code, principal.id, person=person, now=self._clock.now())
        if trial.pairing is None:
            raise _refused(trial, principal.id, self._clock.now())
        log.info("people_linked", who=principal.id, other=trial.pairing.principal)
        return await self._store.people.linked(principal.id)

    async def unlink(self, verdict: access.AccessVerdict) -> bool:
        """Whoever asks is nobody else any more; False when they were not."""
        who = _somebody(verdict).id
        return await self._store.people.unlink(who, self._clock.now(), by=who)


class Refusals:
    """What this gateway has refused since it began."""

    def __init__(self, since: datetime) -> None:
        self.since = since
        self.counts: Counter[str] = Counter()
        """By the rule that did not let the sender in, else by the name of the error."""

    def count(self, refusal: errors.FrontdeskError) -> None:
        rule = refusal.rule if isinstance(refusal, errors.NotAllowed) else type(refusal).__name__
        self.counts[str(rule)] += 1


def owner_of_terminal() -> access.AccessVerdict:
    """The verdict on whoever sits at the machine itself."""
    return access.decide(SessionSource.local_cli(), False, access.Access())


def _refused(trial: codes.Trial, place: str, now: datetime) -> errors.FrontdeskError:
    if trial.locked_until is None:
        log.warning("code_wrong", place=place)
        return errors.WrongCode()
    log.warning("codes_locked", place=place, until=_shown(trial.locked_until))
    seconds = max(1, math.ceil((trial.locked_until - now).total_seconds()))
    return errors.LockedOut(until=_shown(trial.locked_until), retry_after_seconds=seconds)


def _shown(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%d %H:%M UTC")


def _somebody(verdict: access.AccessVerdict) -> people.Principal:
    if not verdict.allowed or verdict.principal is None:
        raise errors.NotAllowed(who=verdict.who, rule="only people who were let in have accounts to link")
    return verdict.principal
