"""Who looks at a page: somebody who signed in, or somebody with a link that was made for them."""

from datetime import timedelta

from starlette.requests import Request
from starlette.responses import Response

from frontdesk import errors
from frontdesk.contracts.clock import Clock
from frontdesk.formats import links
from frontdesk.model.confirmations import Caller, Confirmation
from frontdesk.web.confirmations.credentials import Credentials

COOKIE = "frontdesk_approver"
PATH = "/approvals"
SESSION_SECONDS = 8 * 3600


class Sessions:
    """The cookie is a signed, ending proof that a token was shown; the token is nowhere in it."""

    def __init__(self, credentials: Credentials, key: bytes, clock: Clock, *, secure: bool) -> None:
        self._credentials = credentials
        self._key = key
        self._clock = clock
        self._secure = secure

    def begin(self, caller: Caller, response: Response) -> None:
        expires_at = self._clock.now() + timedelta(seconds=SESSION_SECONDS)
        session = links.session(self._credentials.mark(caller), caller.id, expires_at)
        response.set_cookie(
            COOKIE,
            links.sign(self._key, session),
            max_age=SESSION_SECONDS,
            path=PATH,
            secure=self._secure,
            httponly=True,
            samesite="strict",
        )

    def end(self, response: Response) -> None:
        response.delete_cookie(COOKIE, path=PATH, secure=self._secure, httponly=True, samesite="strict")

    def signed_in(self, request: Request) -> Caller | None:
        """Whose session it is; none once it has ended, or the approver's token is another one."""
        token = request.cookies.get(COOKIE)
        if token is None:
            return None
        try:
            approver, _ = links.read(token)
            caller = self._credentials.approver(approver)
            if caller is not None:
                about = (self._credentials.mark(caller),)
                links.check(self._key, token, links.Purpose.SESSION, about, self._clock.now())
        except errors.LinkRefused:
            return None
        return caller

    def linked(self, token: str, asked: Confirmation) -> Caller:
        """For whom a link about exactly this request was made. LinkRefused."""
        about = (asked.id, asked.digest)
        approver = links.check(self._key, token, links.Purpose.DECIDE, about, self._clock.now())
        caller = self._credentials.approver(approver)
        if caller is None:
            raise errors.LinkRefused()
        return caller
