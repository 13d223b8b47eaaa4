"""The confirmation service over HTTP: what programs ask and approvers decide with."""

import secrets
import time
from http import HTTPStatus

import msgspec
from msgspec import UNSET
from starlette.exceptions import HTTPException
from starlette.responses import Response

from frontdesk import errors
from frontdesk.flow.confirmations.service import MOST_LISTED, Confirmations
from frontdesk.model import rules
from frontdesk.model.confirmations import Confirmation
from frontdesk.web import routes
from frontdesk.web.confirmations import admission, answers, records, streams, views
from frontdesk.web.confirmations.admission import Who
from frontdesk.web.confirmations.streams import Streams
from frontdesk.web.confirmations.table import Call, Operation

RULE_ID_BYTES = 8


class Counter:
    def __init__(self, service: Confirmations, waiting: Streams, page_url: str | None) -> None:
        self._service = service
        self._streams = waiting
        self._page_url = page_url

    async def submit(self, call: Call) -> Response:
        headers: records.Repeats = call.headers
        key = None if headers.idempotency_key is UNSET else headers.idempotency_key
        submitted = await self._service.submit(call.data, call.caller, idempotency_key=key)
        return views.submitted(submitted, self._page_url)

    async def list_confirmations(self, call: Call) -> Response:
        wanted: records.Selection = call.query
        status = None if wanted.status is UNSET else wanted.status
        found = await self._service.list(_clamped(wanted.limit), status)
        return answers.give(records.Listing(count=len(found), confirmations=views.listed(found)))

    async def show(self, call: Call) -> Response:
        asked = await self._seen(call)
        seconds = streams.waiting_seconds(call.headers.prefer)
        if seconds is None:
            return answers.give(views.shown(asked))
        asked = await self._streams.wait(asked.id, seconds)
        return answers.give(views.shown(asked), headers={streams.PREFERENCE_APPLIED: f"wait={seconds}"})

    async def approve(self, call: Call) -> Response:
        said = call.read(records.Approval)
        voted = await self._service.approve(
            call.id, call.caller, name=said.approver, reason=said.reason, digest=said.digest
        )
        return answers.give(views.decided(voted))

    async def deny(self, call: Call) -> Response:
        said = call.read(records.Denial)
        voted = await self._service.deny(
            call.id, call.caller, name=said.denier, reason=said.reason, digest=said.digest
        )
        return answers.give(views.decided(voted))

    async def redeem(self, call: Call) -> Response:
        digest = call.read(records.Redeeming).digest
        await self._seen(call)
        asked, payload = await self._service.redeem(call.id, call.caller, digest)
        return answers.give(views.redeemed(asked, payload))

    async def erase(self, call: Call) -> Response:
        await self._service.erase(call.id, call.caller)
        return answers.give(views.shown(await self._service.find(call.id)))

    async def show_audit(self, call: Call) -> Response:
        wanted: records.View = call.query
        if wanted.view == "events":
            rows = await self._service.audit_newest(_clamped(wanted.limit))
            return answers.give(records.Events(count=len(rows), entries=tuple(map(views.event, rows))))
        found = await self._service.list(_clamped(wanted.limit))
        return answers.give(records.Entries(count=len(found), entries=views.listed(found)))

    async def follow_events(self, call: Call) -> Response:
        last: int | msgspec.UnsetType = call.headers.last_event_id
        after = None if last is UNSET else last
        return routes.Stream(self._streams.events(after), HTTPStatus.OK, streams.HEADERS)

    async def list_rules(self, call: Call) -> Response:  # noqa: ARG002
        found = await self._service.rules()
        return answers.give(records.Rules(count=len(found), rules=tuple(found)))

    async def add_rule(self, call: Call) -> Response:
        wanted = call.read(records.NewRule).as_rule(f"r_{secrets.token_hex(RULE_ID_BYTES)}")
        return answers.give(await self._service.add_rule(wanted, call.caller), HTTPStatus.CREATED)

    async def revoke_rule(self, call: Call) -> Response:
        if not await self._service.revoke_rule(call.id, call.caller):
            raise HTTPException(HTTPStatus.NOT_FOUND, f"There is no rule {call.id!r}.")
        return Response(status_code=HTTPStatus.NO_CONTENT)

    async def show_health(self, call: Call) -> Response:  # noqa: ARG002
        pending = await self._service.pending_count()
        return answers.give(records.Health(status="ok", pending_count=pending, timestamp=time.time()))

    async def _seen(self, call: Call) -> Confirmation:
        """The confirmation; to whoever may not see it there is none."""
        asked = await self._service.find(call.id)
        if not admission.may_see(call.caller, asked):
            raise errors.UnknownConfirmation(confirmation_id=call.id)
        return asked


def _clamped(limit: int) -> int:
    return min(max(limit, 1), MOST_LISTED)


def operations(counter: Counter) -> list[Operation]:
    """Every address of the service. What is checked, and what the document says, is what stands here."""
    return [
        Operation(
            method="POST",
            path="/confirm",
            handle=counter.submit,
            summary="Ask people to allow an action",
            who=Who.REQUESTER,
            headers=records.Repeats,
            body=records.Asked,
            needs_body=True,
            answers={HTTPStatus.ACCEPTED: (records.Waiting,), HTTPStatus.OK: (records.Allowed,)},
            problems=(
                HTTPStatus.CONFLICT,
                HTTPStatus.UNPROCESSABLE_ENTITY,
                HTTPStatus.TOO_MANY_REQUESTS,
            ),
        ),
        Operation(
            method="GET",
            path="/confirm",
            handle=counter.list_confirmations,
            summary="List requests, newest first",
            who=Who.APPROVER,
            query=records.Selection,
            answers={HTTPStatus.OK: (records.Listing,)},
        ),
        Operation(
            method="GET",
            path="/confirm/{id}",
            handle=counter.show,
            summary="Show a request, at once or when it is decided",
            who=Who.READER,
            headers=records.Waits,
            answers={HTTPStatus.OK: (records.Shown,)},
        ),
        Operation(
            method="POST",
            path="/confirm/{id}/approve",
            handle=counter.approve,
            summary="Allow an action",
            who=Who.APPROVER,
            body=records.Approval,
            answers={HTTPStatus.OK: (records.Decided,)},
            problems=(HTTPStatus.CONFLICT, HTTPStatus.PRECONDITION_FAILED),
        ),
        Operation(
            method="POST",
            path="/confirm/{id}/deny",
            handle=counter.deny,
            summary="Refuse an action",
            who=Who.APPROVER,
            body=records.Denial,
            answers={HTTPStatus.OK: (records.Decided,)},
            problems=(HTTPStatus.CONFLICT, HTTPStatus.PRECONDITION_FAILED),
        ),
        Operation(
            method="POST",
            path="/confirm/{id}/redeem",
            handle=counter.redeem,
            summary="Have the bytes of an allowed action, once, to carry them out",
            who=Who.REQUESTER,
            body=records.Redeeming,
            needs_body=True,
            answers={HTTPStatus.OK: (records.Redeemed,)},
            problems=(HTTPStatus.CONFLICT, HTTPStatus.GONE, HTTPStatus.PRECONDITION_FAILED),
        ),
        Operation(
            method="POST",
            path="/confirm/{id}/erase",
            handle=counter.erase,
            summary="Forget the arguments, description and reasons of what was decided",
            who=Who.APPROVER,
            answers={HTTPStatus.OK: (records.Shown,)},
            problems=(HTTPStatus.CONFLICT,),
        ),
        Operation(
            method="GET",
            path="/audit",
            handle=counter.show_audit,
            summary="What was asked and what became of it, or the rows of the audit log",
            who=Who.APPROVER,
            query=records.View,
            answers={HTTPStatus.OK: (records.Entries, records.Events)},
        ),
        Operation(
            method="GET",
            path="/events",
            handle=counter.follow_events,
            summary="The rows of the audit log as server-sent events, from now on or after the last one seen",
            who=Who.APPROVER,
            headers=records.Resumes,
            answers={HTTPStatus.OK: ()},
            media_type="text/event-stream",
        ),
        Operation(
            method="GET",
            path="/rules",
            handle=counter.list_rules,
            summary="The rules that hold, oldest first",
            who=Who.APPROVER,
            answers={HTTPStatus.OK: (records.Rules,)},
        ),
        Operation(
            method="POST",
            path="/rules",
            handle=counter.add_rule,
            summary="Keep a rule",
            who=Who.APPROVER,
            body=records.NewRule,
            needs_body=True,
            answers={HTTPStatus.CREATED: (rules.Rule,)},
        ),
        Operation(
            method="DELETE",
            path="/rules/{id}",
            handle=counter.revoke_rule,
            summary="Revoke a rule",
            who=Who.APPROVER,
            answers={HTTPStatus.NO_CONTENT: ()},
        ),
        Operation(
            method="GET",
            path="/health",
            handle=counter.show_health,
            summary="Whether the service works, and how much waits",
            who=Who.EVERYBODY,
            answers={HTTPStatus.OK: (records.Health,)},
        ),
    ]
