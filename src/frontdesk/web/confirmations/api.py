"""The confirmation service over HTTP: what each address does for whoever may use it."""

import secrets
import time
from http import HTTPStatus

from msgspec import UNSET
from starlette.exceptions import HTTPException
from starlette.responses import Response

from frontdesk import errors
from frontdesk.model.confirmations import Confirmation
from frontdesk.web import routes
from frontdesk.web.confirmations import admission, answers, records, streams, views
from frontdesk.web.confirmations.table import Call, Desk

RULE_ID_BYTES = 8


async def submit(desk: Desk, call: Call) -> Response:
    headers: records.Repeats = call.headers
    key = None if headers.idempotency_key is UNSET else headers.idempotency_key
    return views.submitted(
        await desk.service.submit(call.data, call.caller, idempotency_key=key), desk.page_url
    )


async def list_confirmations(desk: Desk, call: Call) -> Response:
    wanted: records.Selection = call.query
    status = None if wanted.status is UNSET else wanted.status
    found = await desk.service.list(wanted.limit, status)
    return answers.give(records.Listing(count=len(found), confirmations=views.listed(found)))


async def show(desk: Desk, call: Call) -> Response:
    asked = await _seen(desk, call)
    seconds = streams.waiting_seconds(call.headers.prefer)
    if seconds is None:
        return answers.give(views.shown(asked))
    asked = await desk.streams.wait(asked.id, seconds)
    return answers.give(views.shown(asked), headers={streams.PREFERENCE_APPLIED: f"wait={seconds}"})


async def approve(desk: Desk, call: Call) -> Response:
    said = call.read(records.Approval)
    return await _vote(desk, call, said, name=said.approver, approves=True)


async def deny(desk: Desk, call: Call) -> Response:
    said = call.read(records.Denial)
    return await _vote(desk, call, said, name=said.denier, approves=False)


async def _vote(desk: Desk, call: Call, said: records.Said, *, name: str | None, approves: bool) -> Response:
    decide = desk.service.approve if approves else desk.service.deny
    voted = await decide(call.id, call.caller, name=name, reason=said.reason, digest=said.digest)
    return answers.give(views.decided(voted))


async def reveal(desk: Desk, call: Call) -> Response:
    return answers.give(views.revealed(await desk.service.reveal(call.id, call.caller)))


async def redeem(desk: Desk, call: Call) -> Response:
    digest = call.read(records.Redeeming).digest
    await _seen(desk, call)
    return answers.give(views.redeemed(*await desk.service.redeem(call.id, call.caller, digest)))


async def erase(desk: Desk, call: Call) -> Response:
    await desk.service.erase(call.id, call.caller)
    return answers.give(views.shown(await desk.service.find(call.id)))


async def show_audit(desk: Desk, call: Call) -> Response:
    wanted: records.View = call.query
    if wanted.view == "events":
        rows = await desk.service.audit_newest(wanted.limit)
        return answers.give(records.Events(count=len(rows), entries=tuple(map(views.event, rows))))
    found = await desk.service.list(wanted.limit)
    return answers.give(records.Entries(count=len(found), entries=views.listed(found)))


async def follow_events(desk: Desk, call: Call) -> Response:
    headers: records.Resumes = call.headers
    after = None if headers.last_event_id is UNSET else headers.last_event_id
    return routes.Stream(desk.streams.events(after), HTTPStatus.OK, streams.HEADERS)


async def list_rules(desk: Desk, _: Call) -> Response:
    found = await desk.service.rules()
    return answers.give(records.Rules(count=len(found), rules=tuple(found)))


async def add_rule(desk: Desk, call: Call) -> Response:
    wanted = call.read(records.NewRule).as_rule(f"r_{secrets.token_hex(RULE_ID_BYTES)}")
    return answers.give(await desk.service.add_rule(wanted, call.caller), HTTPStatus.CREATED)


async def revoke_rule(desk: Desk, call: Call) -> Response:
    if not await desk.service.revoke_rule(call.id, call.caller):
        raise HTTPException(HTTPStatus.NOT_FOUND, f"There is no rule {call.id!r}.")
    return Response(status_code=HTTPStatus.NO_CONTENT)


async def show_health(desk: Desk, _: Call) -> Response:
    await desk.service.check()
    pending = await desk.service.pending_count()
    return answers.give(records.Health(status="ok", pending_count=pending, timestamp=time.time()))


async def _seen(desk: Desk, call: Call) -> Confirmation:
    """The confirmation; to whoever may not see it there is none."""
    asked = await desk.service.find(call.id)
    if not admission.may_see(call.caller, asked):
        raise errors.UnknownConfirmation(confirmation_id=call.id)
    return asked
