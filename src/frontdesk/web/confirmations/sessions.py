"""Who looks at a page: somebody who signed in, or somebody with a link that was made for them."""

import secrets
from datetime import timedelta

from starlette.requests import Request
from starlette.responses import Response

from frontdesk import errors
from frontdesk.contracts.clock import Clock
from frontdesk.formats import links
from frontdesk.model.confirmations import Caller, Confirmation
from frontdesk.web.confirmations.credentials import Credentials
from frontdesk.web.confirmations.endings import Endings

COOKIE = "frontdesk_approver"
PATH = "/approvals"
SESSION_SECONDS = 8 * 3600
NUMBER_BYTES = 16


class Sessions:
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
        response.set_cookie(
            COOKIE,
            f"{number}.{links.sign(self._key, session)}",
            max_age=SESSION_SECONDS,
            path=PATH,
            secure=self._secure,
            httponly=True,
            samesite="strict",
        )

    def end(self, request: Request) -> None:
        """Nobody is signed in with this cookie from now on, wherever it was copied to. OSError."""
        if self.signed_in(request) is not None:
            number, token = _parts(request)
            self._endings.add(number, links.read(token)[1], self._clock.now())

    def forget(self, response: Response) -> None:
        """Take the cookie from the browser."""
        response.delete_cookie(COOKIE, path=PATH, secure=self._secure, httponly=True, samesite="strict")

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
        return None if self._endings.has(number, expires) else caller

    def linked(self, token: str, asked: Confirmation) -> Caller:
        """For whom a link about exactly this request was made. LinkRefused."""
        about = (asked.id, asked.digest)
        approver = links.check(self._key, token, links.Purpose.DECIDE, about, self._clock.now())
        caller = self._credentials.approver(approver)
        if caller is None:
            raise errors.LinkRefused()
        return caller

    def _mark(self, caller: Caller, number: str) -> str:
        return f"{self._credentials.mark(caller)} {number}"


def _parts(request: Request) -> tuple[str, str]:
    """The number in the cookie and what proves it; both empty without one."""
    number, _, token = request.cookies.get(COOKIE, "").partition(".")
    return number, token
