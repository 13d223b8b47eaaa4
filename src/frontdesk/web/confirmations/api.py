"""The confirmation service over HTTP: each address with who may use it, what goes in and out, and what it
does."""

import asyncio
import base64
import secrets
import time
from collections.abc import AsyncGenerator, Iterable
from datetime import UTC, datetime
from http import HTTPStatus

import msgspec
from msgspec import UNSET
from msgspec.structs import asdict, replace
from starlette.exceptions import HTTPException
from starlette.responses import Response

from frontdesk import errors
from frontdesk.flow.confirmations.confirming import ConfirmationService
from frontdesk.formats import precedents
from frontdesk.formats.cards import Known
from frontdesk.model import rules
from frontdesk.model.audit import Standings
from frontdesk.model.confirmations import MUTED, CallerKind, Confirmation, Status, Submitted
from frontdesk.web import problems
from frontdesk.web.confirmations import records, waiting
from frontdesk.web.confirmations.waiting import Streams
from frontdesk.web.endpoints import HttpCall, give
from frontdesk.web.openapi import PREFERENCE_APPLIED
from frontdesk.web.operations import Form, Table, Who

RULE_ID_BYTES = 8

MOST_DETAILS_BYTES = 4 * 1024 * 1024
"""So much of details is in one list; those that come later are left out."""
NULL = msgspec.Raw(b"null")
ALLOWED = "It is allowed: redeem it within a minute to carry it out."
LATE = "It was allowed, and not carried out in time: redeem it to have it asked again, once."

OPERATIONS = Table(who=Who.APPROVER)


class ConfirmationApi(msgspec.Struct, frozen=True, kw_only=True):
    """What calls are answered with."""

    service: ConfirmationService
    streams: Streams
    page_url: str | None = None
    """Where the pages for people are."""

    async def seen(self, call: HttpCall, what: str = "show") -> Confirmation:
        """The confirmation that a call names. Approvers see everything, agents what they asked for, others
        what nobody with a name asked for; to whoever may not see it there is none."""
        asked = await self.service.find(call.id)
        if call.caller.kind is not CallerKind.APPROVER and not call.caller.asked_for(asked):
            refusal = errors.NotAllowed(who=call.caller.id, rule="another one asked for it")
            await self.service.note_refusal(refusal, what, call.id)
            raise errors.UnknownConfirmation(confirmation_id=call.id)
        return asked


@OPERATIONS.add(
    "POST",
    "/confirm",
    {202: records.Waiting, 200: records.Allowed},
    who=Who.REQUESTER,
    headers=records.Repeats,
    body=records.ActionRequest,
    needs_body=True,
    problems=problems.OF_A_REQUEST,
)
async def submit(api: ConfirmationApi, call: HttpCall) -> Response:
    """Ask people to allow an action."""
    key = call.headers.idempotency_key or None
    return _taken(await api.service.submit(call.data, call.caller, idempotency_key=key), api.page_url)


def _taken(what: Submitted, page_url: str | None) -> Response:
    """What became of a submission; whatever is not allowed is no success."""
    asked = what.confirmation
    if asked.status is Status.PENDING:
        waits = f"It waits until somebody decides, at most {asked.timeout_seconds} seconds."
        look = f" Approvers see it at {page_url.rstrip('/')}/approvals/{asked.id}." if page_url else ""
        waiting = records.Waiting.of(
            asked,
            message=waits + look,
            approve_url=f"/confirm/{asked.id}/approve",
            deny_url=f"/confirm/{asked.id}/deny",
            repeated=what.repeated,
        )
        return give(waiting, HTTPStatus.ACCEPTED)
    if asked.status is Status.APPROVED:
        allowed = records.Allowed.of(
            asked,
            message=LATE if asked.lapsed_at else ALLOWED,
            status="auto_approved" if what.automatic else str(asked.status),
            auto_approved=what.automatic,
            repeated=what.repeated,
        )
        return give(allowed)
    kind = errors.Expired if asked.status is Status.EXPIRED else errors.Denied
    facts: dict[str, object] = {"id": asked.id, "confirmation_status": str(asked.status)}
    return problems.respond(problems.KINDS[kind], _why_not(what), None, problems.code_of(kind), **facts)


def _why_not(what: Submitted) -> str:
    asked = what.confirmation
    if asked.status is Status.EXPIRED:
        return "Nobody decided in time."
    if asked.resolved_by == MUTED:
        return "It is refused: the same was denied a while ago, by this name or another."
    if what.automatic:
        return "It is refused: a rule denies it."
    return f"It was denied: {asked.reason}." if asked.reason else "It was denied."


@OPERATIONS.add("GET", "/confirm", records.Listing, query=records.Selection)
async def list_confirmations(api: ConfirmationApi, call: HttpCall) -> records.Listing:
    """List requests, newest first."""
    found = [
        await api.service.with_precedent(each) if each.status is Status.PENDING else each
        for each in await api.service.list(call.query.limit, call.query.status or None)
    ]
    return records.Listing(count=len(found), confirmations=await asyncio.to_thread(_listed, found))


def _listed(found: Iterable[Confirmation]) -> tuple[records.ShownConfirmation, ...]:
    """Requests in a list, with details as far as there is room."""
    room, told = MOST_DETAILS_BYTES, []
    for each in found:
        room -= len(each.payload or b"")
        kept = each if room >= 0 else replace(each, payload=None, left_out=True)
        told.append(_shown(kept, precedents.known_of(each)))
    return tuple(told)


def _shown(asked: Confirmation, known: Known | None = None) -> records.ShownConfirmation:
    # The arguments as they are in the bytes that people vote on.
    parts = msgspec.json.decode(asked.payload, type=dict[str, msgspec.Raw]) if asked.payload else {}
    return records.ShownConfirmation.of(
        asked,
        details=parts.get("details", NULL),
        details_omitted=asked.left_out,
        created_at_iso=_iso(asked.created_at),
        resolved_at_iso=_iso(asked.resolved_at) if asked.resolved_at else None,
        quorum=asked.terms.quorum,
        known=known,
    )


def _iso(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat()


@OPERATIONS.add(
    "GET", "/confirm/{id}", records.ShownConfirmation, who=Who.READER, headers=records.Waits, waits=True
)
async def show(api: ConfirmationApi, call: HttpCall) -> Response:
    """Show a request, at once or when it is decided."""
    asked = await api.seen(call)
    seconds = waiting.waiting_seconds(call.headers.prefer)
    if seconds is not None:
        asked = await api.streams.wait(asked.id, seconds)
    known = await api.service.known(asked) if call.caller.kind is CallerKind.APPROVER else None
    waited = {} if seconds is None else {PREFERENCE_APPLIED: f"wait={seconds}"}
    return give(_shown(asked, known), headers=waited)


@OPERATIONS.add(
    "POST", "/confirm/{id}/approve", records.Voted, body=records.ApproveBody, problems=problems.OF_A_VOTE
)
async def approve(api: ConfirmationApi, call: HttpCall) -> records.Voted:
    """Allow an action."""
    said = asdict(call.read(records.ApproveBody))
    return await _voted(api, await api.service.approve(call.id, call.caller, **said))


@OPERATIONS.add(
    "POST", "/confirm/{id}/deny", records.Voted, body=records.DenyBody, problems=problems.OF_A_VOTE
)
async def deny(api: ConfirmationApi, call: HttpCall) -> records.Voted:
    """Refuse an action."""
    said = asdict(call.read(records.DenyBody))
    return await _voted(api, await api.service.deny(call.id, call.caller, **said))


async def _voted(api: ConfirmationApi, asked: Confirmation) -> records.Voted:
    found = await api.service.pause_after(asked)
    pause = records.PauseBegun(**asdict(found)) if found else None
    return records.Voted.of(asked, quorum=asked.terms.quorum, pause=pause)


@OPERATIONS.add("POST", "/confirm/{id}/reveal", records.Revealed, problems=(410,))
async def reveal(api: ConfirmationApi, call: HttpCall) -> records.Revealed:
    """See the values that people are not shown; the audit log says who did."""
    asked = await api.service.reveal(call.id, call.caller)
    return records.Revealed.of(asked, payload=msgspec.Raw(seen_payload(asked)))


def seen_payload(asked: Confirmation) -> bytes:
    """The bytes that people vote on; 410 when they were erased, or never kept."""
    if asked.payload is None:
        raise HTTPException(HTTPStatus.GONE, "What it was about was erased, or was not kept.")
    return asked.payload


@OPERATIONS.add(
    "POST",
    "/confirm/{id}/redeem",
    records.RedeemedPayload,
    who=Who.REQUESTER,
    body=records.RedeemBody,
    needs_body=True,
    problems=problems.OF_A_GRANT,
)
async def redeem(api: ConfirmationApi, call: HttpCall) -> records.RedeemedPayload:
    """Have the bytes of an allowed action, once, to carry them out."""
    digest = call.read(records.RedeemBody).digest
    # First: whoever may not see it learns neither its state nor that its digest is another one.
    await api.seen(call, "redeem")
    asked, payload = await api.service.redeem(call.id, call.caller, digest)
    encoded = base64.b64encode(payload).decode()
    return records.RedeemedPayload.of(asked, payload_base64=encoded, payload=msgspec.Raw(payload))


@OPERATIONS.add("POST", "/confirm/{id}/erase", records.ShownConfirmation, problems=(errors.StillPending,))
async def erase(api: ConfirmationApi, call: HttpCall) -> records.ShownConfirmation:
    """Forget the arguments, description and reasons of what was decided."""
    await api.service.erase(call.id, call.caller)
    return _shown(await api.service.find(call.id))


@OPERATIONS.add("GET", "/audit", (records.Entries, records.AuditEvents), query=records.View)
async def show_audit(api: ConfirmationApi, call: HttpCall) -> records.Entries | records.AuditEvents:
    """What was asked and what became of it, or the rows of the audit log."""
    if call.query.view == "events":
        rows = await api.service.audit_newest(call.query.limit)
        return records.AuditEvents(count=len(rows), entries=tuple(map(records.AuditEvent.of, rows)))
    found = await api.service.list(call.query.limit)
    return records.Entries(count=len(found), entries=_listed(found))


@OPERATIONS.add("GET", "/audit/standings", Standings, query=records.StandingsPlace)
async def show_standings(api: ConfirmationApi, call: HttpCall) -> Standings:
    """What the store holds of some requests and of all rules, to be compared with the audit log."""
    return await api.service.standings(call.query.after)


@OPERATIONS.add("GET", "/events", headers=records.Resumes, form=Form.EVENTS)
async def follow_events(api: ConfirmationApi, call: HttpCall) -> AsyncGenerator[bytes, None]:
    """The rows of the audit log as server-sent events, from now on or after the last one seen."""
    after = call.headers.last_event_id
    return api.streams.events(None if after is UNSET else after)


@OPERATIONS.add("GET", "/rules", records.Rules)
async def list_rules(api: ConfirmationApi, _: HttpCall) -> records.Rules:
    """The rules that hold, oldest first."""
    found = await api.service.rules()
    return records.Rules(count=len(found), rules=tuple(found))


@OPERATIONS.add("POST", "/rules", {201: rules.Rule}, body=records.NewRule, needs_body=True)
async def add_rule(api: ConfirmationApi, call: HttpCall) -> rules.Rule:
    """Keep a rule."""
    wanted = call.read(records.NewRule).as_rule(f"r_{secrets.token_hex(RULE_ID_BYTES)}")
    return await api.service.add_rule(wanted, call.caller)


@OPERATIONS.add("DELETE", "/rules/{id}", {204: ()})
async def revoke_rule(api: ConfirmationApi, call: HttpCall) -> None:
    """Revoke a rule."""
    if not await api.service.revoke_rule(call.id, call.caller):
        raise HTTPException(HTTPStatus.NOT_FOUND, f"There is no rule {call.id!r}.")


@OPERATIONS.add("GET", "/pauses", records.Pauses)
async def list_pauses(api: ConfirmationApi, _: HttpCall) -> records.Pauses:
    """Whose requests are not asked any more, the longest first."""
    found = await api.service.pauses()
    return records.Pauses(count=len(found), pauses=tuple(found))


@OPERATIONS.add("POST", "/pauses/lift", {204: ()}, body=records.LiftBody, needs_body=True, problems=(404,))
async def lift_pause(api: ConfirmationApi, call: HttpCall) -> None:
    """Have people asked for a requester again."""
    requester = call.read(records.LiftBody).requester
    if not await api.service.lift_pause(requester, call.caller):
        raise HTTPException(HTTPStatus.NOT_FOUND, "Nobody of that name is paused.")


@OPERATIONS.add("GET", "/health", records.Health, who=Who.EVERYBODY)
async def show_health(api: ConfirmationApi, _: HttpCall) -> records.Health:
    """Whether the service works, and how much waits."""
    await api.service.check()
    pending = await api.service.pending_count()
    return records.Health(status="ok", pending_count=pending, timestamp=time.time())
