"""The confirmation service with what it needs: a store, the owner's keys, somebody who watches the clock, and
calls to programs that want to hear of a decision."""

import asyncio
import os
import secrets
from collections.abc import AsyncIterator, Coroutine
from contextlib import aclosing, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec

from frontdesk import errors
from frontdesk.app import sockets
from frontdesk.app.opening import open_store
from frontdesk.contracts.clock import Clock, SystemClock
from frontdesk.contracts.secrets import Secret
from frontdesk.flow.confirmations.callbacks import DecisionCallbacks
from frontdesk.flow.confirmations.confirming import ConfirmationService
from frontdesk.formats import webhooks
from frontdesk.logs import get_logger
from frontdesk.model.confirmations import Settings
from frontdesk.stores.store import Store

FOLDER, TOKEN, LINK_KEY = "confirm", "approver.token", "link.key"
UNSEEN = "approver.token.unseen"
"""There until somebody was shown the token."""
SECRET_BYTES = 32
OTHERS = 0o077
CALL_SECONDS = 10.0
"""For all of a call, however slowly the other side answers."""

log = get_logger(__name__)


class Keys(msgspec.Struct, frozen=True, kw_only=True):
    """What belongs to the owner of the service: the credential that decides, and the key that signs links."""

    token_file: Path
    token: Secret
    """The approver's token, as it is in the file when it is asked for."""
    link_key: bytes

    def is_first_look(self) -> bool:
        """Whether nobody was shown the token before: true for one of all who ask."""
        try:
            self.token_file.with_name(UNSEEN).unlink()
        except FileNotFoundError:
            return False
        return True

    @property
    def socket(self) -> Path:
        """Where the owner's own commands reach the service when it runs alone."""
        return sockets.service_socket_of(self.token_file.parents[1])


def prepare_keys(home: Path) -> Keys:
    """The keys in the home folder, made at the first start. Only the owner can read them."""
    folder = home / FOLDER
    for each in (home, folder):
        each.mkdir(mode=0o700, parents=True, exist_ok=True)
    token_file, key_file = folder / TOKEN, folder / LINK_KEY
    if _keep(token_file, secrets.token_urlsafe(SECRET_BYTES)):
        (folder / UNSEEN).touch(mode=0o600)
    _keep(key_file, secrets.token_hex(SECRET_BYTES))
    for each in (token_file, key_file):
        if each.stat().st_mode & OTHERS:
            log.warning("key_exposed", path=each, advice="remove it, and start again to have another one")
    return Keys(
        token_file=token_file,
        token=lambda: read_token(home),
        link_key=bytes.fromhex(_read(key_file)),
    )


def read_token(home: Path) -> str:
    """The owner's token. MissingSecret when the service has not made one yet."""
    return _read(home / FOLDER / TOKEN)


def _keep(path: Path, secret: str) -> bool:
    """Make the file with its whole content at once; False when somebody has done so before."""
    if path.exists():
        return False
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        file = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(file, "w", encoding="ascii") as opened:
            opened.write(f"{secret}\n")
            opened.flush()
            os.fsync(opened.fileno())
        os.link(draft, path)
    except FileExistsError:
        return False
    finally:
        draft.unlink(missing_ok=True)
    return True


def _read(path: Path) -> str:
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        with os.fdopen(file, encoding="ascii") as opened:
            secret = opened.read().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise errors.MissingSecret(where=path, setting="confirm.token_env") from error
    if not secret:
        raise errors.MissingSecret(where=path, setting="confirm.token_env")
    return secret


@asynccontextmanager
async def open_confirmations(
    url: str, settings: Settings, *, callback_secret: Secret | None = None, clock: Clock | None = None
) -> AsyncIterator[ConfirmationService]:
    """The service over a store of its own, with its clock watched. StoreLocked names who has the file."""
    store = await open_store(url)
    try:
        async with (
            watching(ConfirmationService(store, settings, clock=clock)) as service,
            calling(store, callback_secret, clock),
        ):
            yield service
    finally:
        await store.close()


@asynccontextmanager
async def watching(service: ConfirmationService) -> AsyncIterator[ConfirmationService]:
    """What is due expires and escalates, for as long as the block lasts."""
    async with running(service.watch(), "frontdesk-confirmations"):
        yield service


class CallbackClient:
    """Posts bodies in the Standard Webhooks form. Redirections are not followed."""

    def __init__(self, secret: Secret, clock: Clock | None = None) -> None:
        self._secret = secret
        self._clock = clock or SystemClock()
        import httpx  # noqa: PLC0415 - takes long to load, and is of use only where somebody is called

        self._unreachable = (httpx.HTTPError, httpx.InvalidURL, TimeoutError)
        self._client = httpx.AsyncClient(timeout=CALL_SECONDS, follow_redirects=False, trust_env=False)

    async def call(self, url: str, message_id: str, body: bytes) -> bool:
        """Whether it was heard. Only the status of the answer counts; the rest of it is not read."""
        try:
            signed = webhooks.signed_headers(self._secret(), message_id, self._clock.now(), body)
            headers = {"content-type": "application/json", **signed}
            async with (
                asyncio.timeout(CALL_SECONDS),
                self._client.stream("POST", url, content=body, headers=headers) as answer,
            ):
                heard = answer.is_success
        except (errors.FrontdeskError, *self._unreachable) as error:
            log.warning("callback_failed", confirmation=message_id, why=type(error).__name__)
            return False
        if not heard:
            log.warning("callback_failed", confirmation=message_id, why=f"status {answer.status_code}")
        return heard

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


@asynccontextmanager
async def running(work: Coroutine[Any, Any, None], name: str) -> AsyncIterator[None]:
    """The work goes on for as long as the block lasts, and has ended after it."""
    task = asyncio.create_task(work, name=name)
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
