"""One webhook endpoint: its address, its secrets, its callbacks."""

import math
from collections.abc import Sequence
from http import HTTPStatus

from frontdesk import errors
from frontdesk.channels.called import CalledChannel, why_unusable
from frontdesk.channels.webhook import inbound, outbound
from frontdesk.channels.webhook import options as settings
from frontdesk.contracts import channels
from frontdesk.contracts.clock import Clock
from frontdesk.contracts.secrets import Secret
from frontdesk.formats import webhooks
from frontdesk.logs import get_logger
from frontdesk.model import deliveries
from frontdesk.model.platforms import Platform

log = get_logger(__name__)


class Channel(CalledChannel[settings.Options]):
    """An endpoint called ``account``. The service that uses it is known by its signature."""

    Options = settings.Options

    def __init__(
        self, options: settings.Options, account: str | None = None, *, clock: Clock | None = None
    ) -> None:
        super().__init__(Platform.WEBHOOK, options, account, clock)
        self._callbacks = outbound.Callbacks(options)
        self.capabilities = channels.Capabilities(
            authenticates=True,
            reliable_sender_ids=True,
            edits=options.stream,
            idempotent_seconds=math.inf if options.idempotent else 0.0,
        )

    @property
    def routes(self) -> Sequence[channels.Route]:
        path = f"/channels/webhook/{self.account}" if self.account else "/channels/webhook"
        limit = self._options.max_body_bytes
        return [channels.Route(method="POST", path=path, handle=self._handle, max_body_bytes=limit)]

    async def send(self, delivery: deliveries.Delivery) -> deliveries.Outcome:
        secrets = self._usable_secrets(self._options.secrets[:1])
        if not secrets:
            return deliveries.NotSent(why="the webhook's secret is missing or cannot be used")
        callback = outbound.build_callback(delivery, secrets[0], self._clock.now())
        return await self._callbacks.post(callback)

    async def draft(self, delivery: deliveries.Delivery) -> deliveries.Outcome:
        """Drafts of an answer, and the answer, are known to be one by the turn's id."""
        outcome = await self.send(delivery)
        if isinstance(outcome, deliveries.Sent):
            return deliveries.Sent(message_id=outbound.draft_id(delivery))
        return outcome

    async def close(self) -> None:
        await self._callbacks.close()

    def trouble(self) -> str | None:
        """None of its secrets can be used: it could tell nobody from anybody."""
        return why_unusable(self._options.secrets, webhooks.secret_bytes)

    async def _handle(self, request: channels.Request) -> channels.Response:
        secrets = self._usable_secrets(self._options.secrets)
        if self._desk is None:
            return inbound.try_later("This endpoint is not ready.")
        if not secrets:
            return inbound.try_later("This endpoint has no secret that can be used: tell whoever runs it.")
        try:
            signed_id = webhooks.verify(secrets, request.headers, request.body, now=self._clock.now())
        except errors.SignatureRefused as error:
            log.warning("webhook_refused", account=self.account, client=request.client, why=error)
            return inbound.problem(HTTPStatus.UNAUTHORIZED, str(error))
        request.prove(f"{self.name} {self.account}")
        limit = self._options.max_text_characters
        try:
            incoming = inbound.read_message(request.body, signed_id, self.account, limit)
        except errors.InvalidMessage as error:
            return inbound.problem(HTTPStatus.UNPROCESSABLE_ENTITY, str(error))
        except errors.InvalidInput as error:
            return inbound.problem(HTTPStatus.BAD_REQUEST, str(error))
        return await inbound.hand_over(self._desk, incoming)

    def _usable_secrets(self, secrets: Sequence[Secret]) -> list[str]:
        """The secrets that are there: while they are being changed, one may be gone already."""
        found: list[str] = []
        for secret in secrets:
            try:
                read = secret()
                webhooks.secret_bytes(read)
            except (errors.MissingSecret, errors.InvalidInput) as error:
                log.warning("webhook_secret_unusable", account=self.account, why=error)
            else:
                found.append(read)
        return found
