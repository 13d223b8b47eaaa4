"""Credentials: whose token it is, and whether they may ask for what they want. Callers are made here and
nowhere else in the web."""

import hashlib
import hmac
import re
from collections.abc import Collection, Mapping
from http import HTTPStatus

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request

from frontdesk import errors
from frontdesk.contracts.secrets import Secret
from frontdesk.formats import http
from frontdesk.logs import get_logger
from frontdesk.model.confirmations import TOKEN, Caller, CallerKind, Mode
from frontdesk.model.people import Person
from frontdesk.web.endpoints import ANYBODY
from frontdesk.web.guesses import Guesses, token_in
from frontdesk.web.middleware import is_loopback
from frontdesk.web.operations import Who
from frontdesk.web.problems import CHALLENGE

UNKNOWN = "The service does not know the token that was sent."
PROXIED = ("forwarded", "x-forwarded-for", "x-real-ip", "via")
"""Who sends one of these is not who asks."""

_HASHED = re.compile(r"sha256:([0-9a-f]{64})")

log = get_logger(__name__)


class Credentials(msgspec.Struct, frozen=True, kw_only=True):
    """The tokens of approvers and agents, by name, read when they are needed.

    A secret is the token itself, or ``sha256:`` and its digest in hex. A token that an agent has is an
    agent's, even where an approver has the same. One that is short is nobody's.
    """

    approvers: Mapping[str, Secret]
    agents: Mapping[str, Secret] = {}
    people: Mapping[str, Collection[str]] = {}
    """The other names of an approver: who they are in the chats."""
    guesses: Guesses = msgspec.field(default_factory=Guesses)
    troubles: dict[Secret, str] = msgspec.field(default_factory=dict)
    """Why secrets cannot be used, as the log has it: said again only when it changes, since whoever sends any
    token has all of them read."""

    def admit(self, mode: Mode, request: Request, who: Who) -> Caller:
        """The caller. 401 for nobody we know, NotAllowed for somebody else than who may."""
        if who is Who.EVERYBODY:
            return ANYBODY
        caller = self._caller(mode, request, who)
        if who is Who.APPROVER and caller.kind is not CallerKind.APPROVER:
            raise errors.NotAllowed(who=caller.id, rule="this takes an approver's credential")
        if who is Who.REQUESTER and caller.kind is CallerKind.APPROVER:
            raise errors.NotAllowed(who=caller.id, rule="whoever approves neither asks nor carries out")
        return caller

    def _caller(self, mode: Mode, request: Request, who: Who) -> Caller:
        given = request.headers.getlist("authorization")
        if not given and who is not Who.APPROVER and mode is Mode.SOLO and is_near(request):
            return ANYBODY
        token = token_in(given)
        caller = self.recognise(token, request) if token else None
        if caller is None:
            whose = "an approver's token" if who is Who.APPROVER else "an agent's token"
            wanted = f"This takes {whose}, as the header Authorization: Bearer TOKEN."
            detail = f"{UNKNOWN} {wanted}" if token else wanted
            raise HTTPException(HTTPStatus.UNAUTHORIZED, detail, CHALLENGE)
        return caller

    def recognise(self, token: bytes, request: Request) -> Caller | None:
        """Whose token it is, for somebody who shows it. 429 after too many wrong ones from their address; the
        owner's socket has none."""
        self.guesses.check(token, request)
        caller = self.find(token)
        self.guesses.count(token, request, right=caller is not None)
        return caller

    def find(self, token: bytes) -> Caller | None:
        """Whose token it is; a short one is nobody's, also where its digest alone is kept. All are compared,
        in the same time whatever they hold."""
        given = hashlib.sha256(token).digest()
        # Both, also when the first has it: how long it takes does not tell whose it is.
        agents = self._owners(self.agents, given)
        approvers = self._owners(self.approvers, given)
        if len(token) < http.MIN_CREDENTIAL_CHARACTERS:
            return None
        if agents and approvers:
            log.warning("credential_shared", agent=agents[0], approver=approvers[0])
        if agents:
            return Caller(id=TOKEN + agents[0], kind=CallerKind.AGENT)
        return self._approver(approvers[0], approvers) if approvers else None

    def approver(self, approver_id: str) -> Caller | None:
        """An approver by one of their names, as long as they have a token."""
        for name, secret in self.approvers.items():
            own = Person.of([TOKEN + name, *self.people.get(name, ())])
            if own.goes_by(approver_id) and (digest := self._digest_of(name, secret)):
                return self._approver(name, self._owners(self.approvers, digest))
        return None

    def mark(self, caller: Caller) -> str:
        """What changes when the approver's token does: a session holds only as long as it is the same."""
        name = caller.id.removeprefix(TOKEN)
        digest = self._digest_of(name, self.approvers[name])
        return hashlib.sha256(b"frontdesk session " + digest).hexdigest()

    def _approver(self, name: str, owners: Collection[str]) -> Caller:
        """One of those who have a token: by one token they are one person."""
        accounts = [account for owner in owners for account in self.people.get(owner, ())]
        names = frozenset({*(TOKEN + owner for owner in owners), *accounts})
        return Caller(id=TOKEN + name, kind=CallerKind.APPROVER, people=names)

    def _owners(self, secrets: Mapping[str, Secret], given: bytes) -> list[str]:
        return [
            name for name, each in secrets.items() if hmac.compare_digest(self._digest_of(name, each), given)
        ]

    def _digest_of(self, name: str, secret: Secret) -> bytes:
        """The digest of somebody's token; empty, which no token has, when there is none."""
        try:
            token = http.check_credential(secret().strip())
        except (errors.UnusableSecret, errors.InvalidInput) as error:
            if self._is_new(error, secret):
                log.warning("credential_weak", name=name, why=error)
            return b""
        except errors.MissingSecret as error:
            if self._is_new(error, secret):
                log.warning("credential_missing", name=name, why=error)
            return b""
        self.troubles.pop(secret, None)
        if hashed := _HASHED.fullmatch(token):
            return bytes.fromhex(hashed[1])
        return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()

    def _is_new(self, error: errors.FrontdeskError, secret: Secret) -> bool:
        before, self.troubles[secret] = self.troubles.get(secret), str(error)
        return before != self.troubles[secret]


def is_near(request: Request) -> bool:
    """Whether it comes from this machine, and not through a proxy on it."""
    passed_on = any(name in request.headers for name in PROXIED)
    return request.client is not None and is_loopback(request.client.host) and not passed_on
