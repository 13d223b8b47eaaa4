"""Frontdesk as a chat-completions endpoint: conversations are kept here, answers are collected."""

from collections.abc import Sequence
from http import HTTPStatus

from frontdesk import errors
from frontdesk.channels.api_server import inbound, outbound
from frontdesk.channels.api_server import options as settings
from frontdesk.channels.called import CalledChannel, field_of, why_unusable
from frontdesk.contracts import channels
from frontdesk.contracts.clock import Clock
from frontdesk.logs import get_logger
from frontdesk.model import deliveries
from frontdesk.model.platforms import Platform

log = get_logger(__name__)

COMPLETIONS, MODELS = "/v1/chat/completions", "/v1/models"

UNKNOWN_TOKEN = outbound.Failure(
    status=HTTPStatus.UNAUTHORIZED,
    message="No such token. Send the header 'Authorization: Bearer TOKEN'.",
    code="invalid_api_key",
    type="authentication_error",
)
NOT_READY = outbound.Failure(
    status=HTTPStatus.SERVICE_UNAVAILABLE,
    message="The endpoint is not ready. Send the request again.",
    code="not_ready",
    again=True,
)

REFUSALS = {
    errors.InvalidInput: (HTTPStatus.BAD_REQUEST, "invalid_request"),
    errors.Unroutable: (HTTPStatus.BAD_REQUEST, "unroutable"),
    errors.NotAllowed: (HTTPStatus.FORBIDDEN, "not_allowed"),
    errors.TooManyWaiting: (HTTPStatus.TOO_MANY_REQUESTS, "too_many_waiting"),
    errors.StoreError: (HTTPStatus.SERVICE_UNAVAILABLE, "not_stored"),
}
AGAIN = (errors.TooManyWaiting, errors.StoreError)
"""What may be over when the client sends the request again."""


class Channel(CalledChannel[settings.Options]):
    """An endpoint whose users are known by their bearer tokens."""

    Options = settings.Options

    def __init__(
        self, options: settings.Options, account: str | None = None, *, clock: Clock | None = None
    ) -> None:
        super().__init__(Platform.API_SERVER, options, account, clock)

    @property
    def capabilities(self) -> channels.Capabilities:
        return channels.Capabilities(
            collects=True, authenticates=True, notices=False, reliable_sender_ids=True
        )

    @property
    def routes(self) -> Sequence[channels.Route]:
        prefix = f"/channels/api_server/{self.account}" if self.account else ""
        limit = self._options.max_body_bytes
        return [
            channels.Route(
                method="POST",
                path=f"{prefix}{COMPLETIONS}",
                handle=self._complete,
                max_body_bytes=limit,
                short=COMPLETIONS,
            ),
            channels.Route(method="GET", path=f"{prefix}{MODELS}", handle=self._list_models, short=MODELS),
        ]

    async def send(self, delivery: deliveries.Delivery) -> deliveries.Outcome:
        return deliveries.NotSent(why=f"answer {delivery.id} is to be collected")

    async def close(self) -> None:
        """There is nothing to close."""

    def trouble(self) -> str | None:
        """No user has a token that could be shown."""
        return why_unusable(self._options.tokens.values())

    async def _list_models(self, request: channels.Request) -> channels.Response:
        if self._find_user(request) is None:
            return outbound.respond_failure(UNKNOWN_TOKEN)
        model = {"id": self._options.model, "object": "model", "created": 0, "owned_by": "frontdesk"}
        return outbound.respond_json({"object": "list", "data": [model]})

    async def _complete(self, request: channels.Request) -> channels.Response:
        user = self._find_user(request)
        if user is None:
            return outbound.respond_failure(UNKNOWN_TOKEN)
        if self._desk is None:
            return outbound.respond_failure(NOT_READY)
        try:
            return await self._reply(self._desk, user, request)
        except errors.FrontdeskError as error:
            return outbound.respond_failure(refusal_of(error))

    async def _reply(self, desk: channels.Desk, user: str, request: channels.Request) -> channels.Response:
        ask = inbound.read_ask(request.body)
        incoming = inbound.build_incoming(ask, user, self.account, request.headers)
        receipt = await desk.accept(incoming)
        completion = outbound.Completion(
            receipt.turn_id, self._options.model, self._clock.now(), shows_usage=ask.wants_usage
        )
        reply = outbound.Reply(desk, incoming.source, receipt, completion, self._options.wait_seconds)
        return reply.stream() if ask.stream else await reply.whole()

    def _find_user(self, request: channels.Request) -> str | None:
        user = inbound.find_user(self._options.tokens, request.headers)
        if user is None:
            log.warning("api_token_refused", account=self.account, client=request.client)
        else:
            request.prove(f"{self.name} {self.account} {user}")
        return user


def refusal_of(error: errors.FrontdeskError) -> outbound.Failure:
    """What the client is told about a request that was not taken in; other errors are ours."""
    status, code = next((row for kind, row in REFUSALS.items() if isinstance(error, kind)), (None, ""))
    if status is None:
        raise error
    message = str(error)
    if isinstance(error, errors.StoreError):
        log.warning("api_message_not_stored", why=error)
        message = f"The message could not be stored: {error.outside}. Send the request again."
    if isinstance(error, AGAIN):
        return outbound.Failure(status=status, message=message, code=code, again=True)
    param = field_of(error) if isinstance(error, errors.InvalidInput) else None
    return outbound.Failure(
        status=status, message=message, code=code, type="invalid_request_error", param=param
    )
