"""What approvers do beforehand, and what is noted of those who are none: rules, pauses and refusals."""

from collections.abc import Sequence

from msgspec.structs import replace

from frontdesk import errors
from frontdesk.contracts.clock import Clock
from frontdesk.logs import get_logger
from frontdesk.model import confirmations, rules
from frontdesk.model.confirmations import Caller, CallerKind, Confirmation, RequesterPause, Settings, Status
from frontdesk.model.rules import Rule
from frontdesk.stores.confirmations import Confirmations

log = get_logger(__name__)


class Precautions:
    def __init__(self, kept: Confirmations, settings: Settings, clock: Clock) -> None:
        self._kept = kept
        self._clock = clock
        self.settings = settings

    async def add_rule(self, rule: Rule, caller: Caller) -> Rule:
        """Keep a rule; a remembered decision is one, too."""
        check_approver(caller)
        now = self._clock.now()
        rule = replace(rule, created_by=caller.id, created_at=now)
        rule.check(now)
        if rule.effect is rules.Effect.ALLOW and self.settings.mode is confirmations.Mode.STRICT:
            raise errors.InvalidInput(what="The rule", why="nothing is allowed beforehand in mode strict")
        await self._kept.add_rule(rule, now)
        log.info("rule_added", rule=rule.id, effect=str(rule.effect), by=caller.id)
        return rule

    async def revoke_rule(self, rule_id: str, caller: Caller) -> bool:
        check_approver(caller)
        revoked = await self._kept.revoke_rule(rule_id, caller.id, self._clock.now())
        log.info("rule_revoked", rule=rule_id, by=caller.id, found=revoked)
        return revoked

    async def rules(self) -> Sequence[Rule]:
        return await self._kept.rules(self._clock.now())

    async def pauses(self) -> Sequence[RequesterPause]:
        """For whom nobody is asked any more, the longest first."""
        return await self._kept.pauses()

    async def pause_after(self, voted: Confirmation) -> RequesterPause | None:
        """The pause that holds for whoever asked, when this was denied: whoever denied it is told."""
        return await self._kept.pause_of(voted.requester) if voted.status is Status.DENIED else None

    async def lift_pause(self, requester: str, caller: Caller) -> bool:
        """Have people asked for a requester again; False when it is not paused."""
        check_approver(caller)
        lifted = await self._kept.lift_pause(requester, caller.id, self._clock.now())
        if lifted:
            log.info("pause_lifted", requester=requester, by=caller.id)
        return lifted

    async def note_refusal(
        self, refusal: errors.NotAllowed, what: str, confirmation_id: str | None = None
    ) -> None:
        """Leave a row of the audit log, and with it an event, of what somebody was refused. What comes again
        within a minute is counted."""
        who, why = str(refusal.who), f"{what}: {refusal.rule}"
        if await self._kept.note_refusal(who, why, confirmation_id, self._clock.now()):
            log.warning("attempt_refused", who=who, what=what, confirmation=confirmation_id)


def check_approver(caller: Caller) -> None:
    if caller.kind is not CallerKind.APPROVER:
        raise errors.NotAllowed(who=caller.id, rule="this takes an approver's credential")
