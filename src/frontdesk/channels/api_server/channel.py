"""Frontdesk as a chat-completions endpoint: conversations are kept here, answers are collected."""

from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from functools import partial
from http import HTTPStatus
from typing import Any

from frontdesk import errors
from frontdesk.channels.api_server import inbound, outbound, responses, shapes
from frontdesk.channels.api_server import options as settings
from frontdesk.channels.api_server.responding import Responder, ResponsesRequest
from frontdesk.channels.called import CalledChannel, field_of, why_unusable
from frontdesk.contracts import channels
from frontdesk.contracts.clock import Clock
from frontdesk.formats import http
from frontdesk.logs import get_logger
from frontdesk.model import deliveries
from frontdesk.model.platforms import Platform

log = get_logger(__name__)

Answering = Coroutine[Any, Any, channels.Response]
Handler = Callable[[channels.Request], Awaitable[channels.Response]]
Address = tuple[str, str, channels.RouteAbout | None, Handler]

UNKNOWN_TOKEN = outbound.Failure(
    status=HTTPStatus.UNAUTHORIZED,
    message="No such token. Send the header 'Authorization: Bearer TOKEN', with a token of the settings or "
    "one that frontdesk token add has made.",
    code="invalid_api_key",
    type="authentication_error",
)
NOT_READY = outbound.Failure(
    status=HTTPStatus.SERVICE_UNAVAILABLE,
    message="The endpoint is not ready. Send the request again.",
    code="not_ready",
    again=True,
)
NO_MODEL = responses.gone("There is no model of that name.", "model", "model_not_found")

ASKING: dict[str, Any] = {
    "headers": shapes.AskHeaders,
    "streams": True,
    "statuses": (HTTPStatus.CONFLICT, HTTPStatus.UNPROCESSABLE_ENTITY, HTTPStatus.GATEWAY_TIMEOUT),
    "refusal": shapes.ErrorForm,
}
ADDRESSES = (
    (
        "POST",
        "/v1/chat/completions",
        channels.RouteAbout(
            name="create_completion",
            summary="Say something, and get the answer as a chat completion",
            body=inbound.CompletionsRequest,
            gives=shapes.ChatCompletion,
            **ASKING,
        ),
    ),
    (
        "GET",
        "/v1/models",
        channels.RouteAbout(
            name="list_models",
            summary="The one model there is, in a list",
            gives=shapes.ModelList,
            refusal=shapes.ErrorForm,
        ),
    ),
    (
        "GET",
        "/v1/models/{model:path}",
        channels.RouteAbout(
            name="show_model",
            summary="A model by its name",
            gives=shapes.ListedModel,
            refusal=shapes.ErrorForm,
        ),
    ),
    (
        "POST",
        "/v1/responses",
        channels.RouteAbout(
            name="create_response",
            summary="Say something, and get the answer as a response",
            body=ResponsesRequest,
            gives=responses.ModelResponse,
            **ASKING,
        ),
    ),
    (
        "GET",
        "/v1/responses/{response_id}",
        channels.RouteAbout(
            name="show_response",
            summary="A response as it stands",
            query=shapes.ShowQuery,
            gives=responses.ModelResponse,
            refusal=shapes.ErrorForm,
            streams=True,
        ),
    ),
    (
        "GET",
        "/v1/responses/{response_id}/input_items",
        channels.RouteAbout(
            name="list_input_items",
            summary="The message that a response answers, in a list",
            gives=responses.InputItems,
            refusal=shapes.ErrorForm,
        ),
    ),
    (
        "POST",
        "/v1/responses/{response_id}/cancel",
        channels.RouteAbout(
            name="cancel_response",
            summary="Stop a response that is being made",
            gives=responses.ModelResponse,
            refusal=shapes.ErrorForm,
            statuses=(HTTPStatus.CONFLICT,),
        ),
    ),
)

BEGINS = (
    "A conversation begins with its first response. Its id is in that response, or a name of your own in the "
    "header X-Frontdesk-Session; go on with it as `conversation`. What was said is on the page and at "
    "/api/v1/sessions; /forget ends it."
)
NOT_DONE = {
    ("POST", "/v1/conversations"): BEGINS,
    **{(method, "/v1/conversations/{conversation_id}"): BEGINS for method in ("GET", "POST", "DELETE")},
    **{(method, "/v1/conversations/{conversation_id}/items"): BEGINS for method in ("GET", "POST")},
    **{
        (method, "/v1/conversations/{conversation_id}/items/{item_id}"): BEGINS
        for method in ("GET", "DELETE")
    },
}
"""What clients of the API may ask for besides, and why it is not done here."""
REFUSALS = {
    errors.UnsupportedField: (HTTPStatus.BAD_REQUEST, "unsupported_parameter"),
    errors.InvalidInput: (HTTPStatus.BAD_REQUEST, "invalid_request"),
    errors.Unroutable: (HTTPStatus.BAD_REQUEST, "unroutable"),
    errors.UnknownName: (HTTPStatus.NOT_FOUND, "not_found"),
    errors.GoneOn: (HTTPStatus.CONFLICT, "gone_on"),
    errors.KeyReused: (HTTPStatus.UNPROCESSABLE_ENTITY, "key_reused"),
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
        handlers: Mapping[str, Handler] = {
            "create_completion": self._complete,
            "list_models": self._list_models,
            "show_model": self._show_model,
            "create_response": self._asked(Responder.create),
            "show_response": self._asked(Responder.show),
            "list_input_items": self._asked(Responder.list_input),
            "cancel_response": self._asked(Responder.cancel),
        }
        served: list[Address] = [(*each, handlers[each[-1].name]) for each in ADDRESSES]
        served += [(*where, None, partial(self._refuse, why)) for where, why in NOT_DONE.items()]
        return [
            channels.Route(
                method=method,
                path=prefix + path,
                handle=handle,
                admit=self._known,
                max_body_bytes=self._options.max_body_bytes,
                short=path,
                about=about,
            )
            for method, path, about, handle in served
        ]

    async def send(self, delivery: deliveries.Delivery) -> deliveries.Outcome:
        return deliveries.NotSent(why=f"answer {delivery.id} is to be collected")

    async def close(self) -> None:
        """There is nothing to close."""

    def trouble(self) -> str | None:
        """No user has a token that could be shown."""
        return why_unusable(self._options.tokens.values(), http.check_credential)

    async def _list_models(self, request: channels.Request) -> channels.Response:
        return await self._known(request) or outbound.respond_json(shapes.ModelList(data=[self._model]))

    async def _show_model(self, request: channels.Request) -> channels.Response:
        if refused := await self._known(request):
            return refused
        if request.params["model"] != self._options.model:
            return outbound.respond_failure(NO_MODEL)
        return outbound.respond_json(self._model)

    async def _known(self, request: channels.Request) -> channels.Response | None:
        """Why nothing is told; None for somebody who is known."""
        try:
            return None if await self._find_user(request) else outbound.respond_failure(UNKNOWN_TOKEN)
        except errors.FrontdeskError as error:
            return outbound.respond_failure(refusal_of(error))

    @property
    def _model(self) -> shapes.ListedModel:
        return shapes.ListedModel(id=self._options.model)

    async def _refuse(self, why: str, request: channels.Request) -> channels.Response:
        """Say to somebody who is known what is not done here."""
        not_done = outbound.Failure(
            status=HTTPStatus.BAD_REQUEST,
            message=why,
            code="unsupported_operation",
            type="invalid_request_error",
        )
        return await self._known(request) or outbound.respond_failure(not_done)

    async def _complete(self, request: channels.Request) -> channels.Response:
        return await self._answer(request, self._reply)

    def _asked(self, answer: Callable[[Responder, channels.Request], Answering]) -> Handler:
        """What answers a request to the responses API."""

        async def respond(desk: channels.Desk, user: str, request: channels.Request) -> channels.Response:
            return await answer(Responder(desk, user, self.account, self._options), request)

        return partial(self._answer, answer=respond)

    async def _answer(
        self,
        request: channels.Request,
        answer: Callable[[channels.Desk, str, channels.Request], Answering],
    ) -> channels.Response:
        try:
            user = await self._find_user(request)
            if user is None:
                return outbound.respond_failure(UNKNOWN_TOKEN)
            if self._desk is None:
                return outbound.respond_failure(NOT_READY)
            return await answer(self._desk, user, request)
        except errors.FrontdeskError as error:
            return outbound.respond_failure(refusal_of(error))

    async def _reply(self, desk: channels.Desk, user: str, request: channels.Request) -> channels.Response:
        ask = inbound.read_ask(request.body)
        incoming = inbound.build_incoming(ask, user, self.account, request.headers)
        receipt = await desk.accept(incoming)
        if receipt.repeated:
            inbound.check_repeated(incoming, await desk.find(receipt.turn_id))
        created = receipt.received_at or self._clock.now()
        completion = outbound.Completion(
            receipt.turn_id, self._options.model, created, shows_usage=ask.wants_usage
        )
        reply = outbound.Reply(desk, incoming.source, receipt, completion, self._options.wait_seconds)
        return reply.stream() if ask.stream else await reply.whole()

    async def _find_user(self, request: channels.Request) -> str | None:
        """Whose token it is: one of the settings, or one that the gateway has given out."""
        user = await request.visitor(partial(inbound.find_user, self._options.tokens, request.headers))
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
    param = field_of(error) if isinstance(error, errors.InvalidInput | errors.UnknownName) else None
    return outbound.Failure(
        status=status, message=message, code=code, type="invalid_request_error", param=param
    )
