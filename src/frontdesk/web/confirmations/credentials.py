"""Credentials: whose token it is. Callers are made here and nowhere else in the web."""

import hashlib
import hmac
import re
from collections.abc import Collection, Mapping

from frontdesk import errors
from frontdesk.contracts.secrets import Secret
from frontdesk.logs import get_logger
from frontdesk.model.confirmations import TOKEN, Caller, CallerKind

ANYBODY = Caller(id="anybody", kind=CallerKind.ANYBODY)

_HASHED = re.compile(r"sha256:([0-9a-f]{64})")

log = get_logger(__name__)


class Credentials:
    """The tokens of approvers and agents, by name, read when they are needed.

    A secret is the token itself, or ``sha256:`` and its digest in hex. A token that an agent has is an
    agent's, even where an approver has the same.
    """

    def __init__(
        self,
        *,
        approvers: Mapping[str, Secret],
        agents: Mapping[str, Secret] | None = None,
        people: Mapping[str, Collection[str]] | None = None,
    ) -> None:
        """``people`` has the other names of an approver: who they are in the chats."""
        self._approvers = approvers
        self._agents = agents or {}
        self._people = people or {}

    def find(self, token: bytes) -> Caller | None:
        """Whose token it is. All are compared, in the same time whatever they hold."""
        given = hashlib.sha256(token).digest()
        agents = _owners(self._agents, given)
        approvers = _owners(self._approvers, given)
        if agents and approvers:
            log.warning("credential_shared", agent=agents[0], approver=approvers[0])
        if agents:
            return Caller(id=TOKEN + agents[0], kind=CallerKind.AGENT)
        return self._approver(approvers[0]) if approvers else None

    def approver(self, approver_id: str) -> Caller | None:
        """An approver by one of their names, as long as they have a token."""
        for name, secret in self._approvers.items():
            caller = self._approver(name)
            if approver_id in caller.names and _digest_of(name, secret):
                return caller
        return None

    def mark(self, caller: Caller) -> str:
        """What changes when the approver's token does: a session holds only as long as it is the same."""
        name = caller.id.removeprefix(TOKEN)
        digest = _digest_of(name, self._approvers[name])
        return hashlib.sha256(b"frontdesk session " + digest).hexdigest()

    def _approver(self, name: str) -> Caller:
        return Caller(id=TOKEN + name, kind=CallerKind.APPROVER, people=frozenset(self._people.get(name, ())))


def _owners(secrets: Mapping[str, Secret], given: bytes) -> list[str]:
    return [name for name, each in secrets.items() if hmac.compare_digest(_digest_of(name, each), given)]


def _digest_of(name: str, secret: Secret) -> bytes:
    """The digest of somebody's token; empty, which no token has, when there is none."""
    try:
        token = secret().strip()
    except errors.MissingSecret as error:
        log.warning("credential_missing", name=name, why=error)
        return b""
    if hashed := _HASHED.fullmatch(token):
        return bytes.fromhex(hashed[1])
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest() if token else b""
