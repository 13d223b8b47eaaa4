"""Whether confirmations work: who decides and hears of them, the service, the audit log, callbacks."""

import asyncio
from collections.abc import Iterator
from functools import partial
from urllib.parse import urlsplit

import msgspec

from frontdesk import errors
from frontdesk.app import build
from frontdesk.cli import anchors, auditing, one_line
from frontdesk.cli.asking import ask
from frontdesk.cli.confirm import reaching
from frontdesk.cli.doctor.findings import Check, Finding, Severity, failed, warning
from frontdesk.config import Config
from frontdesk.config.confirm import OWNER
from frontdesk.web import ports

NOBODY = (
    "nobody is told of requests: no connected channel has a home_channel. Who decides has to look at the page"
    " /approvals, or at frontdesk confirm list"
)

NOT_KNOWN = (
    "not known whether any are overdue: only the program that has the store could tell. Its log has"
    " callback_failed for each that fails"
)


def checks(anchor: str | None) -> dict[str, Check]:
    """With the last anchor that is kept there the audit log is compared."""
    return {
        "approvers": _approvers,
        "confirmations": _service,
        "audit log": partial(_log, anchor),
        "callbacks": _callbacks,
    }


def _approvers(loaded: Config) -> Finding:
    """Who can decide, and where they are told."""
    if missing := list(_without_token(loaded)):
        return warning(f"no token for {', '.join(missing)}: they cannot decide")
    homes = _homes(loaded)
    if not homes:
        return warning(NOBODY)
    named = ", ".join([OWNER, *sorted(loaded.confirm.people.approvers)])
    return Finding(text=f"{named}; told in {', '.join(homes)}")


def _without_token(loaded: Config) -> Iterator[str]:
    for name, secret in sorted(loaded.confirm.people.approvers.items()):
        try:
            secret()
        except errors.MissingSecret:
            yield name


def _homes(loaded: Config) -> list[str]:
    """The connected platforms that have a home channel."""
    try:
        connected = {str(channel.name) for channel in asyncio.run(build.try_channels(loaded))}
    except errors.FrontdeskError:
        return []  # the check of the channels says why
    return sorted(name for name in connected if loaded.gateway.get_home_channel(name))


class Own(msgspec.Struct, frozen=True, kw_only=True):
    """The service of this home, which runs."""

    served_at: str | None
    pending: int | None
    """None when its store is in trouble."""

    @property
    def waiting(self) -> str:
        return "nobody knows how many are" if self.pending is None else str(self.pending)

    def has(self, port: int) -> bool:
        return self.served_at is not None and urlsplit(self.served_at).port == port


def find_own(loaded: Config) -> Own | None:
    """The service of this home, which answers on the owner's socket."""
    return asyncio.run(_find_own(loaded))


async def _find_own(loaded: Config) -> Own | None:
    client = await reaching.find_own(loaded.home)
    if client is None:
        return None
    try:
        served_at = (await client.call("GET", "/")).get("confirmations")
    except errors.GatewayUnreachable:
        return None
    try:
        return Own(served_at=served_at, pending=(await client.call("GET", "/health"))["pending_count"])
    except errors.GatewayUnreachable:
        return Own(served_at=served_at, pending=None)


def _service(loaded: Config) -> Finding:
    confirm = loaded.confirm
    if not confirm.enabled:
        return Finding(text="not served on a port: confirm.enabled is false")
    own, where = find_own(loaded), f"{confirm.host}:{confirm.port}"
    try:
        with ports.listening(confirm.host, confirm.port):
            return Finding(text=_free(own, where))
    except errors.AddressInUse:
        return _taken(own, where, confirm.port)
    except errors.CannotListen as error:
        return warning(one_line(error))


def _free(own: Own | None, where: str) -> str:
    if own is None or own.served_at is None:
        return f"{where} is free"
    return f"served at {own.served_at}, {own.waiting} waiting; {where}, which is set, is free"


def _taken(own: Own | None, where: str, port: int) -> Finding:
    """Whether it is the service of this home that has the port."""
    if own and own.has(port):
        return Finding(text=f"served at {where}, {own.waiting} waiting")
    place = own.served_at or "no port" if own else None
    yours = f"your service is at {place}" if place else "no service of yours runs"
    return warning(
        f"{where} is taken by another program ({yours}): stop that one, or choose another confirm.port"
    )


def _log(anchor: str | None, loaded: Config) -> Finding:
    """The end of the log, quickly: audit verify looks at all of it."""
    try:
        known = anchors.read(anchor) if anchor else None
        newest, fault = auditing.ask_log(loaded, lambda log: auditing.glance(log, known))
    except OSError as error:
        return failed(one_line(error))
    if fault:
        return failed(f"row {fault.number} is {fault.change}: {fault.why}. See frontdesk audit verify")
    if newest == 0:
        return Finding(text="empty")
    beyond = f", and the anchor's row {known.number}" if known else "; no anchor was given to compare it with"
    return Finding(text=f"row {newest}, the newest, holds{beyond}")


def _callbacks(loaded: Config) -> Finding:
    """Programs that are still to be told of a decision."""
    try:
        told = ask(loaded, lambda office: office.status())["callbacks"]
    except errors.StoreLocked:
        return Finding(verdict=Severity.NOTE, text=NOT_KNOWN)
    except errors.FrontdeskError as error:
        return warning(one_line(error))
    if told["overdue"]:
        late = f"{told['overdue']} of {told['owed']} are overdue"
        return warning(f"{late}: is a service running, with its secret?")
    return Finding(text=f"{told['owed']} waiting" if told["owed"] else "none waiting")
