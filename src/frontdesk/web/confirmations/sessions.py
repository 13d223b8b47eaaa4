"""Who looks at a page: somebody who signed in, or somebody with a link that was made for them."""

import hashlib
import secrets
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from frontdesk import errors
from frontdesk.contracts.clock import Clock
from frontdesk.formats import links
from frontdesk.model.confirmations import Caller, Confirmation
from frontdesk.web import bounds
from frontdesk.web.confirmations.credentials import Credentials

COOKIE = "frontdesk_approver"
PATH = "/approvals"
COOKIE_FLAGS: Mapping[str, Any] = {"path": PATH, "httponly": True, "samesite": "strict"}
SESSION_SECONDS = 8 * 3600
NUMBER_BYTES = 16
MARK = "ended"


class Endings:
    """Each is a file beside the key that signs sessions: a restart forgets none, and every node that takes
    the session, because it has that key in the same folder, knows that it has ended."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def add(self, session: str, expires: int, now: datetime) -> None:
        """Remember it for as long as it would have lasted, and forget those that are over. OSError when it
        cannot be."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for file in self._folder.glob(f"*.{MARK}"):
            lapses = file.name.partition(".")[0]
            if lapses.isdecimal() and int(lapses) <= now.timestamp():
                file.unlink(missing_ok=True)
        self._file(session, expires).touch(mode=0o600)

    def has(self, session: str, expires: int) -> bool:
        return self._file(session, expires).exists()

    def _file(self, session: str, expires: int) -> Path:
        digest = hashlib.sha256(session.encode()).hexdigest()
        return self._folder / f"{expires}.{digest}.{MARK}"


class PageSessions:
    """The cookie is a signed, ending proof that a token was shown; the token is nowhere in it.

    It is the session's own number and the signature: no two sessions are the same one, so that one of them
    can be ended.
    """

    def __init__(
        self, credentials: Credentials, key: bytes, clock: Clock, endings: Endings, *, secure: bool
    ) -> None:
        self._credentials = credentials
        self._key = key
        self._clock = clock
        self._endings = endings
        self._secure = secure

    def begin(self, caller: Caller, response: Response) -> None:
        expires_at = self._clock.now() + timedelta(seconds=SESSION_SECONDS)
        number = secrets.token_hex(NUMBER_BYTES)
        session = links.session(self._mark(caller, number), caller.id, expires_at)
        value = f"{number}.{links.sign(self._key, session)}"
        response.set_cookie(COOKIE, value, max_age=SESSION_SECONDS, secure=self._secure, **COOKIE_FLAGS)

    def end(self, request: Request) -> None:
        """Nobody is signed in with this cookie from now on, wherever it was copied to. OSError."""
        if self.signed_in(request) is not None:
            number, token = _parts(request)
            self._endings.add(number, links.read(token)[1], self._clock.now())

    def forget(self, response: Response) -> None:
        """Take the cookie from the browser."""
        response.delete_cookie(COOKIE, secure=self._secure, **COOKIE_FLAGS)

    def signed_in(self, request: Request) -> Caller | None:
        """Whose session it is; none once it has ended, or the approver's token is another one."""
        number, token = _parts(request)
        if not token:
            return None
        try:
            approver, expires = links.read(token)
            caller = self._credentials.approver(approver)
            if caller is not None:
                about = (self._mark(caller, number),)
                links.check(self._key, token, links.Purpose.SESSION, about, self._clock.now())
        except errors.LinkRefused:
            return None
        if caller is None or self._endings.has(number, expires):
            return None
        bounds.prove(request.scope, caller.id)
        return caller

    def linked(self, token: str, asked: Confirmation) -> Caller:
        """For whom a link about exactly this request was made. LinkRefused."""
        about = (asked.id, asked.digest)
        approver = links.check(self._key, token, links.Purpose.DECIDE, about, self._clock.now())
        caller = self._credentials.approver(approver)
        if caller is None:
            raise errors.LinkRefused()
        return caller

    def note_look(self, caller: Caller, asked: Confirmation) -> str:
        """The proof that somebody has looked at what is hidden; it ends with the request."""
        return links.sign(self._key, links.look(asked.id, asked.digest, caller.id, asked.expires_at))

    def has_looked(self, token: str | None, caller: Caller, asked: Confirmation) -> bool:
        """Whether the proof is this person's, of exactly this request."""
        try:
            about = (asked.id, asked.digest)
            looker = links.check(self._key, token or "", links.Purpose.LOOK, about, self._clock.now())
        except errors.LinkRefused:
            return False
        return looker == caller.id

    def _mark(self, caller: Caller, number: str) -> str:
        return f"{self._credentials.mark(caller)} {number}"


def _parts(request: Request) -> tuple[str, str]:
    """The number in the cookie and what proves it; both empty without one."""
    number, _, token = request.cookies.get(COOKIE, "").partition(".")
    return number, token
