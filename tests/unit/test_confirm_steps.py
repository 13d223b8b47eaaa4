"""What a client says to the service, step by step, without a network."""

import base64
import json
from typing import Any, TypeVar

import pytest

from frontdesk import errors
from frontdesk.confirm import steps
from frontdesk.confirm.answers import ServiceReply
from frontdesk.confirm.records import Ticket
from frontdesk.confirm.steps import ServiceCall, Steps
from frontdesk.formats import canonical
from frontdesk.model.confirmations import Status

T = TypeVar("T")

URL = "http://desk"
DETAILS = {"to": "Ann", "amount": 5.0}
PAYLOAD = canonical.payload("pay", {"to": "Ann", "amount": 5})
TICKET = Ticket(id="c_1", action="pay", digest=canonical.digest(PAYLOAD))
AWAY = errors.ServiceUnreachable(url=URL, why="nobody is there")
PATIENCE_SECONDS = 60.0


def reply(code: int = 200, /, **body: Any) -> ServiceReply:
    return ServiceReply(url=URL, status=code, body=json.dumps(body).encode())


def shown(status: Status = Status.APPROVED) -> ServiceReply:
    return reply(id="c_1", action="pay", status=str(status))


def ask(**options: Any) -> Steps[Ticket]:
    return steps.request(" pay ", "Pay it", DETAILS, **options)


def lead(
    conversation: Steps[T], *heard: ServiceReply | errors.ServiceUnreachable, patience_seconds: float = 0
) -> tuple[T, list[ServiceCall]]:
    """Play the service: the result, and the calls that were made; pauses take no time."""
    talking, calls, answers = steps.patient(conversation, patience_seconds), [], list(heard)
    try:
        step = next(talking)
        while True:
            if isinstance(step, ServiceCall):
                calls.append(step)
            step = talking.send(answers.pop(0) if isinstance(step, ServiceCall) else None)
    except StopIteration as end:
        assert answers == []
        return end.value, calls


def said(call: ServiceCall) -> Any:
    assert call.body is not None
    return json.loads(call.body)


class TestAsking:
    def test_what_is_sent_is_what_the_digest_is_of(self) -> None:
        taken = reply(202, id="c_1", action="pay", digest=TICKET.digest, timeout_seconds=60)
        ticket, (call,) = lead(ask(), taken)
        assert said(call) == {"action": "pay", "description": "Pay it", "details": {"amount": 5, "to": "Ann"}}
        assert (ticket.id, ticket.digest, ticket.timeout_seconds) == ("c_1", TICKET.digest, 60)

    def test_every_attempt_has_the_same_key(self) -> None:
        taken = reply(202, id="c_1", action="pay", digest=TICKET.digest)
        _, calls = lead(ask(), AWAY, reply(503), AWAY, taken, patience_seconds=PATIENCE_SECONDS)
        assert len({call.headers["idempotency-key"] for call in calls}) == 1

    def test_two_requests_have_two_keys_unless_they_are_given_one(self) -> None:
        taken = reply(202, id="c_1", action="pay", digest=TICKET.digest)
        asked = (ask(), ask(), ask(idempotency_key="k"))
        keys = [lead(each, taken)[1][0].headers["idempotency-key"] for each in asked]
        assert (len(set(keys)), keys[2]) == (3, "k")

    def test_confirmation_that_is_not_named_is_not_looked_for(self) -> None:
        with pytest.raises(errors.InvalidInput, match="it is empty"):
            lead(steps.look(""))

    def test_withdrawn_request_is_told_from_one_that_nobody_decided_in_time(self) -> None:
        told = reply(409, detail="gone", id="c_1", confirmation_status="expired", withdrawn=True)
        with pytest.raises(errors.Withdrawn, match="c_1 was withdrawn"):
            lead(steps.say("POST", "/confirm/c_1/approve", about="c_1"), told)
        late = reply(409, detail="late", id="c_1", confirmation_status="expired")
        with pytest.raises(errors.AlreadyResolved, match="expired") as refused:
            lead(steps.say("POST", "/confirm/c_1/approve", about="c_1"), late)
        assert not isinstance(refused.value, errors.Withdrawn)

    def test_service_that_understood_something_else_is_not_believed(self) -> None:
        taken = reply(202, id="c_1", action="pay", digest="0" * 64)
        with pytest.raises(errors.DigestMismatch):
            lead(ask(), taken)

    def test_patience_has_an_end(self) -> None:
        with pytest.raises(errors.ServiceUnreachable):
            lead(ask(), AWAY)
        with pytest.raises(errors.ServiceUnreachable, match="store"):
            lead(ask(), reply(503, detail="The store does not answer."))

    @pytest.mark.parametrize(
        ("answer", "error"),
        [
            (reply(400, detail="no"), errors.InvalidInput),
            (reply(401, detail="no"), errors.NotAllowed),
            (reply(403, detail="no", id="c_1", confirmation_status="denied"), errors.Denied),
            (reply(409, detail="late", id="c_1", confirmation_status="expired"), errors.Expired),
            (reply(413, detail="long"), errors.InvalidInput),
            (reply(422, detail="key"), errors.KeyReused),
            (reply(429, detail="often", window_seconds=3600), errors.RateLimited),
            (reply(500), errors.ServiceUnreachable),
        ],
    )
    def test_refusals_are_named_and_not_tried_again(
        self, answer: ServiceReply, error: type[errors.FrontdeskError]
    ) -> None:
        with pytest.raises(error):
            lead(ask(), answer, patience_seconds=PATIENCE_SECONDS)


class TestCollecting:
    def grant(self, payload: bytes = PAYLOAD, *, of: str = "c_1") -> ServiceReply:
        return reply(id=of, payload_base64=base64.b64encode(payload).decode())

    def test_decision_is_waited_for_as_long_as_it_is_pending(self) -> None:
        heard = (shown(Status.PENDING), AWAY, shown(Status.PENDING), shown(), self.grant())
        redeemed, calls = lead(steps.collect(TICKET), *heard, patience_seconds=PATIENCE_SECONDS)
        assert redeemed.payload == PAYLOAD
        assert [call.headers.get("prefer") for call in calls[:-1]] == ["wait=25"] * 4
        assert said(calls[-1]) == {"digest": TICKET.digest}

    def test_lapsed_approval_is_asked_again_once(self) -> None:
        lapsed = reply(410, detail="x cannot be redeemed: it was late", refused="lapsed", renewal="c_2")
        redeemed, calls = lead(steps.collect(TICKET), shown(), lapsed, shown(), self.grant(of="c_2"))
        assert redeemed.id == "c_2"
        assert [call.path for call in calls[2:]] == ["/confirm/c_2", "/confirm/c_2/redeem"]
        with pytest.raises(errors.GrantUnusable, match="it was late"):
            lead(steps.collect(TICKET), shown(), lapsed, shown(), lapsed)

    def test_renewal_that_is_denied_is_denied(self) -> None:
        lapsed = reply(410, refused="lapsed", renewal="c_2")
        with pytest.raises(errors.Denied):
            lead(steps.collect(TICKET), shown(), lapsed, shown(Status.DENIED))

    def test_used_approval_is_not_asked_for_again(self) -> None:
        used = reply(409, detail="used", refused="redeemed", renewal=None)
        with pytest.raises(errors.GrantUnusable):
            lead(steps.collect(TICKET), shown(), used)

    @pytest.mark.parametrize("payload", [PAYLOAD + b" ", PAYLOAD.replace(b"Ann", b"Eve"), b""])
    def test_other_bytes_are_refused(self, payload: bytes) -> None:
        with pytest.raises(errors.DigestMismatch):
            lead(steps.redeem(TICKET), self.grant(payload))

    def test_bytes_that_are_none_are_refused(self) -> None:
        with pytest.raises(errors.ServiceUnreachable):
            lead(steps.redeem(TICKET), reply(id="c_1", payload_base64="no base64 at all!"))

    def test_bytes_of_another_request_are_refused(self) -> None:
        with pytest.raises(errors.DigestMismatch):
            lead(steps.redeem(TICKET), self.grant(of="c_2"))

    def test_ids_cannot_lead_to_another_address(self) -> None:
        ticket = Ticket(id="../rules?x=1#", action="pay", digest="0")
        with pytest.raises(errors.UnknownConfirmation):
            lead(steps.redeem(ticket), reply(404))
        step = next(steps.redeem(ticket))
        assert isinstance(step, ServiceCall)
        assert step.path == "/confirm/..%2Frules%3Fx%3D1%23/redeem"


class TestSaying:
    def test_what_a_person_says_is_not_said_again(self) -> None:
        with pytest.raises(errors.ServiceUnreachable):
            lead(steps.say("POST", "/rules", {}), AWAY, patience_seconds=PATIENCE_SECONDS)

    @pytest.mark.parametrize(
        ("detail", "told"),
        [
            ("The rule cannot be used: it has no end", "The rule cannot be used: it has no end"),
            ("There is no rule 'r_1'.", "The confirmation service refused this: There is no rule 'r_1'."),
        ],
    )
    def test_refusal_is_told_in_the_words_of_the_service(self, detail: str, told: str) -> None:
        with pytest.raises(errors.InvalidInput) as refused:
            lead(steps.say("POST", "/rules", {}), reply(400, detail=detail))
        assert str(refused.value) == told
