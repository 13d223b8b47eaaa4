"""Deciding where somebody writes, in a chat or at a terminal: who they are, what a yes takes, and what they
are told."""

import asyncio

from frontdesk import errors
from frontdesk.flow.confirmations.notifying import card_of
from frontdesk.flow.parts import Parts
from frontdesk.flow.service import aliases_of
from frontdesk.model import keys, people, routing
from frontdesk.model.access import Role
from frontdesk.model.confirmations import Caller, CallerKind, Confirmation, Status
from frontdesk.model.sources import SessionSource

LOOK = "Look at it and decide there: {where}"
AFTER_ID = " after the id: /approve {id} TARGET"
NOT_YOURS = "Only approvers decide. Ask whoever runs this gateway."
OF_ANOTHER_PROFILE = "It was not asked for by the agent here. Who decides elsewhere may decide about it."
STILL_WAITS = "{id} needs {more} more: {so_far} said yes so far."
PAUSED = "{pause} To have people asked again: /lift {who}"
DECIDED = {Status.APPROVED: "{id} is approved.", Status.DENIED: "{id} is denied."}


async def caller_of(
    parts: Parts, source: SessionSource, role: Role | None, what: str, confirmation_id: str | None = None
) -> Caller:
    """Who decides here, whatever they call themselves: the platform knows them, and they were let in. Of
    anybody else it is noted what they wanted."""
    named = people.name_of(source, await aliases_of(parts.store, source))
    rule = NOT_YOURS if role is None or not role.covers(Role.APPROVER) else None
    if rule is None and not await _is_of_profile(parts, source, confirmation_id):
        rule = OF_ANOTHER_PROFILE
    if rule:
        refusal = errors.NotAllowed(who=named, rule=rule)
        await parts.confirmations.note_refusal(refusal, what, confirmation_id)
        raise refusal
    return Caller(id=named, kind=CallerKind.APPROVER, people=people.names_of(source))


async def _is_of_profile(parts: Parts, source: SessionSource, confirmation_id: str | None) -> bool:
    """Whether it is decided where they write: where a profile answers, about what its agent asks for;
    elsewhere, about everything."""
    profile = routing.named(source.profile)
    if profile is None or confirmation_id is None:
        return profile is None
    asked = await parts.confirmations.find(confirmation_id)
    # Only the gateway says which turn it is about: a session can be claimed by whoever asks.
    key = asked.session_key if asked.turn_id else None
    return key is not None and keys.namespace_of(key) == keys.namespace(profile)


async def after_target(parts: Parts, source: SessionSource, asked: Confirmation, said: str) -> str:
    """What follows the target in what was written behind the id, where a target is typed; else all of it.
    NotLookedAt when this chat does not show all of the action; TargetMissing."""
    if asked.status is not Status.PENDING:
        return said
    asked, wide = await parts.confirmations.with_precedent(asked), parts.notifier.is_wide(source)
    card = await asyncio.to_thread(card_of, asked, wide=wide)
    if card is None:
        return said
    if card.hidden or not await asyncio.to_thread(parts.notifier.is_whole, asked, source):
        where = " or ".join(parts.notifier.places_of(asked))
        raise errors.NotLookedAt(confirmation_id=asked.id, how=LOOK.format(where=where))
    if card.typed is None:
        return said
    rest = card.typed.rest_of(said)
    if rest is None:
        how = AFTER_ID.format(id=asked.id)
        raise errors.TargetMissing(confirmation_id=asked.id, what=card.typed.what, how=how)
    return rest


async def told(parts: Parts, decided: Confirmation) -> str:
    """What became of it, and that it was one denial too many where it was."""
    if decided.status is Status.PENDING:
        more = decided.terms.quorum - len(decided.approvals)
        return STILL_WAITS.format(id=decided.id, more=more, so_far=len(decided.approvals))
    pause = await parts.confirmations.pause_after(decided)
    paused = [PAUSED.format(pause=pause, who=pause.requester)] if pause else []
    return "\n".join((DECIDED[decided.status].format(id=decided.id), *paused))
