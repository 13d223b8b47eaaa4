"""The confirmation service over HTTP: each address with who may use it, what goes in and out, and what it
does."""

import secrets
import time
from collections.abc import AsyncGenerator
from http import HTTPStatus

import msgspec
from msgspec import UNSET
from starlette.exceptions import HTTPException
from starlette.responses import Response

from frontdesk import errors
from frontdesk.flow.confirmations.confirming import ConfirmationService
from frontdesk.model import rules
from frontdesk.model.confirmations import CallerKind, Confirmation
from frontdesk.web.confirmations import records, streams, views
from frontdesk.web.confirmations.streams import Streams
from frontdesk.web.endpoints import HttpCall, give
from frontdesk.web.openapi import PREFERENCE_APPLIED
from frontdesk.web.operations import Form, Table, Who

RULE_ID_BYTES = 8

OPERATIONS = Table()


class ConfirmationApi(msgspec.Struct, frozen=True, kw_only=True):
    """What calls are answered with."""

    service: ConfirmationService
    streams: Streams
    page_url: str | None = None
    """Where the pages for people are."""

    async def seen(self, call: HttpCall) -> Confirmation:
        """The confirmation that a call names. Approvers see everything, agents what they asked for, others
        what nobody with a name asked for; to whoever may not see it there is none."""
        asked = await self.service.find(call.id)
        if call.caller.kind is not CallerKind.APPROVER and not call.caller.asked_for(asked):
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
    problems=(409, 422, 429),
)
async def submit(api: ConfirmationApi, call: HttpCall) -> Response:
    """Ask people to allow an action."""
    headers: records.Repeats = call.headers
    key = None if headers.idempotency_key is UNSET else headers.idempotency_key
    submitted = await api.service.submit(call.data, call.caller, idempotency_key=key)
    return views.submitted(submitted, api.page_url)


@OPERATIONS.add("GET", "/confirm", records.Listing, who=Who.APPROVER, query=records.Selection)
async def list_confirmations(api: ConfirmationApi, call: HttpCall) -> records.Listing:
    """List requests, newest first."""
    wanted: records.Selection = call.query
    status = None if wanted.status is UNSET else wanted.status
    found = await api.service.list(wanted.limit, status)
    return records.Listing(count=len(found), confirmations=views.listed(found))


@OPERATIONS.add(
    "GET", "/confirm/{id}", records.ShownConfirmation, who=Who.READER, headers=records.Waits, waits=True
)
async def show(api: ConfirmationApi, call: HttpCall) -> Response:
    """Show a request, at once or when it is decided."""
    asked = await api.seen(call)
    seconds = streams.waiting_seconds(call.headers.prefer)
    if seconds is None:
        return give(views.shown(asked))
    asked = await api.streams.wait(asked.id, seconds)
    return give(views.shown(asked), headers={PREFERENCE_APPLIED: f"wait={seconds}"})


@OPERATIONS.add(
    "POST",
    "/confirm/{id}/approve",
    records.Decided,
    who=Who.APPROVER,
    body=records.ApproveBody,
    problems=(409, 412),
)
async def approve(api: ConfirmationApi, call: HttpCall) -> records.Decided:
    """Allow an action."""
    said = call.read(records.ApproveBody)
    terms = {"reason": said.reason, "digest": said.digest}
    return views.decided(await api.service.approve(call.id, call.caller, name=said.approver, **terms))


@OPERATIONS.add(
    "POST",
    "/confirm/{id}/deny",
    records.Decided,
    who=Who.APPROVER,
    body=records.DenyBody,
    problems=(409, 412),
)
async def deny(api: ConfirmationApi, call: HttpCall) -> records.Decided:
    """Refuse an action."""
    said = call.read(records.DenyBody)
    terms = {"reason": said.reason, "digest": said.digest}
    return views.decided(await api.service.deny(call.id, call.caller, name=said.denier, **terms))


@OPERATIONS.add("POST", "/confirm/{id}/reveal", records.Revealed, who=Who.APPROVER, problems=(410,))
async def reveal(api: ConfirmationApi, call: HttpCall) -> records.Revealed:
    """See the values that people are not shown; the audit log says who did."""
    return views.revealed(await api.service.reveal(call.id, call.caller))


@OPERATIONS.add(
    "POST",
    "/confirm/{id}/redeem",
    records.RedeemedPayload,
    who=Who.REQUESTER,
    body=records.RedeemBody,
    needs_body=True,
    problems=(409, 410, 412),
)
async def redeem(api: ConfirmationApi, call: HttpCall) -> records.RedeemedPayload:
    """Have the bytes of an allowed action, once, to carry them out."""
    digest = call.read(records.RedeemBody).digest
    await api.seen(call)
    return views.redeemed(*await api.service.redeem(call.id, call.caller, digest))


@OPERATIONS.add("POST", "/confirm/{id}/erase", records.ShownConfirmation, who=Who.APPROVER, problems=(409,))
async def erase(api: ConfirmationApi, call: HttpCall) -> records.ShownConfirmation:
    """Forget the arguments, description and reasons of what was decided."""
    await api.service.erase(call.id, call.caller)
    return views.shown(await api.service.find(call.id))


@OPERATIONS.add("GET", "/audit", (records.Entries, records.AuditEvents), who=Who.APPROVER, query=records.View)
async def show_audit(api: ConfirmationApi, call: HttpCall) -> records.Entries | records.AuditEvents:
    """What was asked and what became of it, or the rows of the audit log."""
    wanted: records.View = call.query
    if wanted.view == "events":
        rows = await api.service.audit_newest(wanted.limit)
        return records.AuditEvents(count=len(rows), entries=tuple(map(views.event, rows)))
    found = await api.service.list(wanted.limit)
    return records.Entries(count=len(found), entries=views.listed(found))


@OPERATIONS.add("GET", "/events", who=Who.APPROVER, headers=records.Resumes, form=Form.EVENTS)
async def follow_events(api: ConfirmationApi, call: HttpCall) -> AsyncGenerator[bytes, None]:
    """The rows of the audit log as server-sent events, from now on or after the last one seen."""
    headers: records.Resumes = call.headers
    return api.streams.events(None if headers.last_event_id is UNSET else headers.last_event_id)


@OPERATIONS.add("GET", "/rules", records.Rules, who=Who.APPROVER)
async def list_rules(api: ConfirmationApi, _: HttpCall) -> records.Rules:
    """The rules that hold, oldest first."""
    found = await api.service.rules()
    return records.Rules(count=len(found), rules=tuple(found))


@OPERATIONS.add("POST", "/rules", {201: rules.Rule}, who=Who.APPROVER, body=records.NewRule, needs_body=True)
async def add_rule(api: ConfirmationApi, call: HttpCall) -> rules.Rule:
    """Keep a rule."""
    wanted = call.read(records.NewRule).as_rule(f"r_{secrets.token_hex(RULE_ID_BYTES)}")
    return await api.service.add_rule(wanted, call.caller)


@OPERATIONS.add("DELETE", "/rules/{id}", {204: ()}, who=Who.APPROVER)
async def revoke_rule(api: ConfirmationApi, call: HttpCall) -> None:
    """Revoke a rule."""
    if not await api.service.revoke_rule(call.id, call.caller):
        raise HTTPException(HTTPStatus.NOT_FOUND, f"There is no rule {call.id!r}.")


@OPERATIONS.add("GET", "/health", records.Health)
async def show_health(api: ConfirmationApi, _: HttpCall) -> records.Health:
    """Whether the service works, and how much waits."""
    await api.service.check()
    pending = await api.service.pending_count()
    return records.Health(status="ok", pending_count=pending, timestamp=time.time())
