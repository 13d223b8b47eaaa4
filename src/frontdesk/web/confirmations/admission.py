"""Admission: who a request comes from, and whether they may ask for what it wants."""

from enum import StrEnum
from http import HTTPStatus

from starlette.exceptions import HTTPException
from starlette.requests import Request

from frontdesk import errors
from frontdesk.model.confirmations import Caller, CallerKind, Confirmation, Mode
from frontdesk.web.confirmations.credentials import ANYBODY, Credentials
from frontdesk.web.doors import is_loopback

CHALLENGE = {"www-authenticate": 'Bearer realm="frontdesk"'}
MAX_TOKEN_BYTES = 1_000
UNKNOWN = "The service does not know the token that was sent."
PROXIED = ("forwarded", "x-forwarded-for", "x-real-ip", "via")
"""Who sends one of these is not who asks."""


class Who(StrEnum):
    """Who may use an address."""

    EVERYBODY = "everybody"
    REQUESTER = "requester"
    """Whoever may ask for an action: an agent; in mode solo every program on this machine."""
    READER = "reader"
    """A requester or an approver."""
    APPROVER = "approver"


class Admission:
    def __init__(self, credentials: Credentials, mode: Mode) -> None:
        self._credentials = credentials
        self._mode = mode

    def admit(self, request: Request, who: Who) -> Caller:
        """The caller. 401 for nobody we know, NotAllowed for somebody else than who may."""
        if who is Who.EVERYBODY:
            return ANYBODY
        caller = self._caller(request, who)
        if who is Who.APPROVER and caller.kind is not CallerKind.APPROVER:
            raise errors.NotAllowed(who=caller.id, rule="this takes an approver's credential")
        if who is Who.REQUESTER and caller.kind is CallerKind.APPROVER:
            raise errors.NotAllowed(who=caller.id, rule="whoever approves neither asks nor carries out")
        return caller

    def _caller(self, request: Request, who: Who) -> Caller:
        given = request.headers.getlist("authorization")
        if not given and who is not Who.APPROVER and self._mode is Mode.SOLO and is_near(request):
            return ANYBODY
        token = _token(given)
        caller = self._credentials.find(token) if token else None
        if caller is None:
            detail = f"{UNKNOWN} {_wanted(who)}" if token else _wanted(who)
            raise HTTPException(HTTPStatus.UNAUTHORIZED, detail, CHALLENGE)
        return caller


def is_near(request: Request) -> bool:
    """Whether it comes from this machine, and not through a proxy on it."""
    passed_on = any(name in request.headers for name in PROXIED)
    return request.client is not None and is_loopback(request.client.host) and not passed_on


def may_see(caller: Caller, asked: Confirmation) -> bool:
    """Approvers see everything, agents what they asked for, others what nobody with a name asked for."""
    return caller.kind is CallerKind.APPROVER or caller.asked_for(asked)


def _token(given: list[str]) -> bytes:
    """The bearer token of the one header that there is; empty when there is none that can be used."""
    kind, _, token = given[0].partition(" ") if len(given) == 1 else ("", "", "")
    raw = token.strip().encode("latin-1")
    return raw if kind.lower() == "bearer" and len(raw) <= MAX_TOKEN_BYTES else b""


def _wanted(who: Who) -> str:
    whose = "an approver's token" if who is Who.APPROVER else "an agent's token"
    return f"This takes {whose}, as the header Authorization: Bearer TOKEN."
