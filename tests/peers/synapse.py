"""A Matrix homeserver for tests: Synapse, in a process of its own, on loopback, knowing no other server."""

import base64
import contextlib
import hashlib
import hmac
import json
import secrets
import sqlite3
import subprocess
import tempfile
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import httpx
import msgspec

from tests import loopback, peers
from tests.patience import PATIENCE_SECONDS

NAME = "frontdesk.test"
DATABASE = "homeserver.db"
POLL_SECONDS = 0.1
STOP_SECONDS = 10.0
LOG_LINES = 20
QUICK = {"per_second": 1000, "burst_count": 1000}
"""For tests that are not about limits: of its own accord the server takes one message in five seconds."""
LIMITS = ("rc_message", "rc_registration", "rc_joins_per_room", "rc_room_creation", "rc_reactions")
LIMITS_BY_KIND = {
    "rc_login": ("address", "account", "failed_attempts"),
    "rc_joins": ("local", "remote"),
    "rc_invites": ("per_room", "per_user", "per_issuer"),
}
FEWEST_ROUNDS = 4
"""Of hashing a password, which nobody has to guess here."""


class Account(msgspec.Struct, frozen=True, kw_only=True):
    user_id: str
    token: str
    device_id: str
    password: str


class Homeserver:
    """A server that runs."""

    def __init__(self, url: str, secret: str, process: subprocess.Popen[bytes], log: Path) -> None:
        self.url = url
        self.process = process
        self._secret = secret
        self._numbers = count()
        self._log = log

    def register(self, name: str, *, admin: bool = False) -> Account:
        """A person of that name and a number, signed in on a first device."""
        name, password = f"{name}{next(self._numbers)}", secrets.token_hex(8)
        place = f"{self.url}/_synapse/admin/v1/register"
        nonce = httpx.get(place).raise_for_status().json()["nonce"]
        said = "\0".join((nonce, name, password, "admin" if admin else "notadmin"))
        proof = hmac.new(self._secret.encode(), said.encode(), hashlib.sha1).hexdigest()
        asked = {"nonce": nonce, "username": name, "password": password, "admin": admin, "mac": proof}
        told = httpx.post(place, json=asked).raise_for_status().json()
        return Account(
            user_id=told["user_id"],
            token=told["access_token"],
            device_id=told["device_id"],
            password=password,
        )

    def sign_in(self, account: Account) -> Account:
        """The same person, on a further device."""
        who = {"type": "m.id.user", "user": account.user_id}
        asked = {"type": "m.login.password", "password": account.password, "identifier": who}
        told = httpx.post(f"{self.url}/_matrix/client/v3/login", json=asked).raise_for_status().json()
        return msgspec.structs.replace(account, token=told["access_token"], device_id=told["device_id"])

    def forget_keys(self, account: Account) -> None:
        """Lose the identity of a device, as with a backup from before it was there."""
        with contextlib.closing(sqlite3.connect(self._log.with_name(DATABASE), PATIENCE_SECONDS)) as held:
            asked = "DELETE FROM e2e_device_keys_json WHERE user_id = ? AND device_id = ?"
            held.execute(asked, (account.user_id, account.device_id))
            held.commit()

    def lift_limits(self, account: Account, administrator: Account) -> None:
        """Somebody for whom the server's limits are none."""
        place = f"{self.url}/_synapse/admin/v1/users/{account.user_id}/override_ratelimit"
        headers = {"authorization": f"Bearer {administrator.token}"}
        httpx.post(
            place, headers=headers, json={"messages_per_second": 0, "burst_count": 0}
        ).raise_for_status()

    def call(self, account: Account, method: str, path: str, body: Any = None) -> Any:
        """What the server answers to somebody; path without ``/_matrix/client/v3``."""
        headers = {"authorization": f"Bearer {account.token}"}
        place = f"{self.url}/_matrix/client/v3{path}"
        return httpx.request(method, place, headers=headers, json=body).raise_for_status().json()

    def last_words(self) -> str:
        return "\n".join(self._log.read_text().splitlines()[-LOG_LINES:])


@contextlib.contextmanager
def running(*, limited: bool = False) -> Iterator[Homeserver]:
    """A server until the end of the block. ``limited``: with the limits that it has of its own accord."""
    programs = peers.require("synapse")
    with tempfile.TemporaryDirectory(prefix="synapse-") as folder:
        yield from _run(programs, Path(folder), limited)


def _run(programs: Path, folder: Path, limited: bool) -> Iterator[Homeserver]:
    port, secret, log = loopback.free_port(), secrets.token_hex(16), folder / "log"
    config = _configure(folder, port, secret, limited)
    with log.open("wb") as output:
        process = subprocess.Popen(
            [programs / "python", "-m", "synapse.app.homeserver", "--config-path", config],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd=folder,
        )
    try:
        server = Homeserver(f"http://127.0.0.1:{port}", secret, process, log)
        _wait_until_ready(server)
        yield server
    finally:
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait_until_ready(server: Homeserver) -> None:
    end = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < end and server.process.poll() is None:
        with contextlib.suppress(httpx.TransportError):
            if httpx.get(f"{server.url}/_matrix/client/versions").is_success:
                return
        time.sleep(POLL_SECONDS)
    raise AssertionError(f"the homeserver did not start:\n{server.last_words()}")


def _configure(folder: Path, port: int, secret: str, limited: bool) -> Path:
    """The file that it reads; JSON is YAML."""
    seed = base64.b64encode(secrets.token_bytes(32)).decode().rstrip("=")
    (folder / "signing.key").write_text(f"ed25519 a_test {seed}\n")
    level = {"root": {"level": "WARNING", "handlers": ["console"]}}
    handler = {"console": {"class": "logging.StreamHandler"}}
    (folder / "log.json").write_text(json.dumps({"version": 1, "handlers": handler} | level))
    resources = [{"names": ["client"], "compress": False}]
    listener = {"port": port, "type": "http", "bind_addresses": ["127.0.0.1"], "resources": resources}
    settings = {
        "server_name": NAME,
        "listeners": [listener],
        "database": {"name": "sqlite3", "args": {"database": str(folder / DATABASE)}},
        "media_store_path": str(folder / "media"),
        "signing_key_path": str(folder / "signing.key"),
        "log_config": str(folder / "log.json"),
        "registration_shared_secret": secret,
        "macaroon_secret_key": secrets.token_hex(16),
        "form_secret": secrets.token_hex(16),
        "report_stats": False,
        "trusted_key_servers": [],
        "presence": {"enabled": False},
        "bcrypt_rounds": FEWEST_ROUNDS,
        "caches": {"sync_response_cache_duration": "0s"},
    }
    if not limited:
        settings |= dict.fromkeys(LIMITS, QUICK)
        settings |= {name: dict.fromkeys(kinds, QUICK) for name, kinds in LIMITS_BY_KIND.items()}
    file = folder / "homeserver.yaml"
    file.write_text(json.dumps(settings))
    return file
