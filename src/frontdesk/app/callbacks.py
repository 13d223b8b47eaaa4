"""Calls to programs that want to hear of a decision: signed, to no other address than they named."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager

import httpx

from frontdesk import errors
from frontdesk.app.tasks import running
from frontdesk.contracts.clock import Clock, SystemClock
from frontdesk.contracts.secrets import Secret
from frontdesk.flow.confirmations.callbacks import DecisionCallbacks
from frontdesk.formats import webhooks
from frontdesk.logs import get_logger
from frontdesk.stores.store import Store

CALL_SECONDS = 10.0
"""For all of a call, however slowly the other side answers."""

log = get_logger(__name__)


class CallbackClient:
    """Posts bodies in the Standard Webhooks form. Redirections are not followed."""

    def __init__(self, secret: Secret, clock: Clock | None = None) -> None:
        self._secret = secret
        self._clock = clock or SystemClock()
        self._client = httpx.AsyncClient(timeout=CALL_SECONDS, follow_redirects=False, trust_env=False)

    async def call(self, url: str, message_id: str, body: bytes) -> bool:
        """Whether it was heard. Only the status of the answer counts; the rest of it is not read."""
        try:
            async with asyncio.timeout(CALL_SECONDS):
                status = await self._post(url, message_id, body)
        except (errors.FrontdeskError, httpx.HTTPError, httpx.InvalidURL, TimeoutError) as error:
            log.warning("callback_failed", confirmation=message_id, why=type(error).__name__)
            return False
        if not httpx.codes.is_success(status):
            log.warning("callback_failed", confirmation=message_id, why=f"status {status}")
        return httpx.codes.is_success(status)

    async def _post(self, url: str, message_id: str, body: bytes) -> int:
        signed = webhooks.signed_headers(self._secret(), message_id, self._clock.now(), body)
        headers = {"content-type": "application/json", **signed}
        async with self._client.stream("POST", url, content=body, headers=headers) as answer:
            return answer.status_code

    async def aclose(self) -> None:
        await self._client.aclose()


@asynccontextmanager
async def calling(store: Store, secret: Secret | None, clock: Clock | None = None) -> AsyncIterator[None]:
    """Programs are told of decisions for as long as the block lasts, if there is a secret to sign them."""
    if secret is None:
        yield
        return
    caller = CallbackClient(secret, clock)
    async with (
        aclosing(caller),
        running(DecisionCallbacks(store, caller.call, clock).run(), "frontdesk-callbacks"),
    ):
        yield
