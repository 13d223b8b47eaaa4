"""Who looks at a page: somebody who signed in, or somebody with a link that was made for them."""

import hashlib
import secrets
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from http import HTTPStatus
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from frontdesk import errors
from frontdesk.config.confirm import OWNER
from frontdesk.contracts.clock import Clock
from frontdesk.formats import links
from frontdesk.model.access import Role
from frontdesk.model.confirmations import TOKEN, Caller, Confirmation
from frontdesk.model.visitors import Visitor
from frontdesk.web.confirmations.credentials import Credentials
from frontdesk.web.endpoints import ANYBODY
from frontdesk.web.operations import PROOF_HEADER, Operation, Who
from frontdesk.web.problems import CHALLENGE

COOKIE = "frontdesk_approver"
PATH = "/approvals"
COOKIE_FLAGS: Mapping[str, Any] = {"path": "/", "httponly": True, "samesite": "strict"}
SESSION_SECONDS = 8 * 3600
NUMBER_BYTES = 16
MARK = "ended"
MOST_COOKIES = 20
"""So many of one name are looked at: any port of the host can add some to ours."""
SIGN_IN_FIRST = "Sign in first."


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


class PageSession(msgspec.Struct, frozen=True, kw_only=True):
    """One that a cookie shows, and that holds."""

    caller: Caller
    number: str
    mark: str
    expires: int


class PageSessions:
    """The cookie says, signed and with an end, that a token was shown; the token is nowhere in it.

    It is the session's own number and the signature: no two sessions are the same one, so that one of them
    can be ended. With the cookie somebody looks. Whatever else they do takes the session's proof, too: it is
    given to whoever signs in, once, and nothing that a cookie opens has it.
    """

    def __init__(
        self, credentials: Credentials, key: bytes, clock: Clock, endings: Endings, *, secure: bool
    ) -> None:
        self._credentials = credentials
        self._key = key
        self._clock = clock
        self._endings = endings
        self._secure = secure

    def begin(self, caller: Caller) -> tuple[str, str]:
        """The cookie of another session and its proof."""
        expires_at = self._clock.now() + timedelta(seconds=SESSION_SECONDS)
        number = secrets.token_hex(NUMBER_BYTES)
        session = links.session(self._mark(caller, number), caller.id, expires_at)
        cookie = f"{number}.{links.sign(self._key, session)}"
        return cookie, links.sign(self._key, links.proof(session))

    def keep(self, cookie: str, response: Response) -> None:
        """Give the cookie to the browser."""
        response.set_cookie(COOKIE, cookie, max_age=SESSION_SECONDS, secure=self._secure, **COOKIE_FLAGS)

    def end(self, request: Request) -> None:
        """Nobody is signed in with what came along from now on, wherever it was copied to. OSError."""
        for session in self._sessions(request):
            self._endings.add(session.number, session.expires, self._clock.now())

    def forget(self, response: Response) -> None:
        """Take the cookie from the browser."""
        response.delete_cookie(COOKIE, secure=self._secure, **COOKIE_FLAGS)

    def admit(self, request: Request, who: Who) -> Caller:  # noqa: ARG002
        """Who looks: whoever signed in, or anybody, who may have a link."""
        return self.signed_in(request) or ANYBODY

    def admit_proven(self, request: Request) -> Caller:
        """Who signed in with this very browser. 401 without a session, Unproven without its proof."""
        sessions = list(self._sessions(request))
        if not sessions:
            raise HTTPException(HTTPStatus.UNAUTHORIZED, SIGN_IN_FIRST, CHALLENGE)
        given = request.headers.getlist(PROOF_HEADER)
        proof = given[0] if len(given) == 1 else ""
        found = next((each for each in sessions if self._fits(proof, each)), None)
        if found is None:
            raise errors.Unproven(who=sessions[0].caller.id, rule="the session's proof did not come along")
        return found.caller

    async def visit(self, request: Request, operation: Operation) -> Visitor:
        """Who looks, or does something. 401 without a session, Unproven without its proof."""
        caller = self.admit_proven(request) if operation.needs_proof else self.signed_in(request)
        if caller is None:
            raise HTTPException(HTTPStatus.UNAUTHORIZED, SIGN_IN_FIRST, CHALLENGE)
        role = Role.ADMINISTRATOR if caller.id == f"{TOKEN}{OWNER}" else Role.APPROVER
        return Visitor(id=caller.id, name=caller.id.removeprefix(TOKEN), role=role, people=caller.people)

    def signed_in(self, request: Request) -> Caller | None:
        """Whose session it is; none once it has ended, or the approver's token is another one."""
        session = next(self._sessions(request), None)
        return session.caller if session else None

    def _sessions(self, request: Request) -> Iterator[PageSession]:
        """Those that hold, of all that came along."""
        for value in islice(_cookies(request), MOST_COOKIES):
            number, _, token = value.partition(".")
            try:
                approver, expires = links.read(token)
                caller = self._credentials.approver(approver)
                if caller is None:
                    continue
                mark = self._mark(caller, number)
                links.check(self._key, token, links.Purpose.SESSION, (mark,), self._clock.now())
            except errors.LinkRefused:
                continue
            if not self._endings.has(number, expires):
                yield PageSession(caller=caller, number=number, mark=mark, expires=expires)

    def _fits(self, proof: str, session: PageSession) -> bool:
        """Whether it was given out with the session."""
        try:
            links.check(self._key, proof, links.Purpose.PROOF, (session.mark,), self._clock.now())
        except errors.LinkRefused:
            return False
        return links.read(proof) == (session.caller.id, session.expires)

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


def _cookies(request: Request) -> Iterator[str]:
    """All of our name, in the order in which they came."""
    for header in request.headers.getlist("cookie"):
        for each in header.split(";"):
            name, _, value = each.strip().partition("=")
            if name == COOKIE:
                yield value
