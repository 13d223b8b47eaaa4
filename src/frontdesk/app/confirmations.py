"""The confirmation service with what it needs: a store, somebody who watches the clock, the owner's keys."""

import os
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

from frontdesk import errors
from frontdesk.app import sockets
from frontdesk.app.callbacks import calling
from frontdesk.app.opening import open_store
from frontdesk.app.tasks import running
from frontdesk.contracts.clock import Clock
from frontdesk.contracts.secrets import Secret
from frontdesk.flow.confirmations.confirming import ConfirmationService
from frontdesk.logs import get_logger
from frontdesk.model.confirmations import Settings

FOLDER, TOKEN, LINK_KEY, ENDED = "confirm", "approver.token", "link.key", "ended"
SECRET_BYTES = 32
MEMORY = ":memory:"
OTHERS = 0o077

log = get_logger(__name__)


class Keys(msgspec.Struct, frozen=True, kw_only=True):
    """What belongs to the owner of the service: the credential that decides, and the key that signs links."""

    token_file: Path
    token: Secret
    """The approver's token, as it is in the file when it is asked for."""
    link_key: bytes
    made: bool
    """The token was made just now: it is shown once."""

    @property
    def socket(self) -> Path:
        """Where the owner's own commands reach the service when it runs alone."""
        return sockets.service_socket_of(self.token_file.parents[1])

    @property
    def ended(self) -> Path:
        """Where sessions of the page that somebody ended are remembered, beside the key that signs them."""
        return self.token_file.parent / ENDED


def prepare_keys(home: Path) -> Keys:
    """The keys in the home folder, made at the first start. Only the owner can read them."""
    folder = home / FOLDER
    for each in (home, folder):
        each.mkdir(mode=0o700, parents=True, exist_ok=True)
    token_file, key_file = folder / TOKEN, folder / LINK_KEY
    made = _keep(token_file, secrets.token_urlsafe(SECRET_BYTES))
    _keep(key_file, secrets.token_hex(SECRET_BYTES))
    for each in (token_file, key_file):
        if each.stat().st_mode & OTHERS:
            log.warning("key_exposed", path=each, advice="remove it, and start again to have another one")
    return Keys(
        token_file=token_file,
        token=lambda: read_token(home),
        link_key=bytes.fromhex(_read(key_file)),
        made=made,
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


def store_url(db_path: str) -> str:
    """The URL of a store in this file, or in memory."""
    if db_path == MEMORY:
        return f"sqlite:///{MEMORY}"
    return f"sqlite:///{db_path.replace('%', '%25').replace('?', '%3F')}"


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
