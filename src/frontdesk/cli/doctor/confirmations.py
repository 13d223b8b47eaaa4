"""Whether confirmations work: who decides and hears of them, the service, the audit log, callbacks."""

import asyncio
from collections.abc import Iterator

import httpx

from frontdesk import errors
from frontdesk.app import audits, build, reach
from frontdesk.cli import anchors, audit, one_line
from frontdesk.cli.confirm import reaching
from frontdesk.cli.doctor.findings import Finding, Verdict
from frontdesk.config import Config
from frontdesk.config.confirm import OWNER
from frontdesk.web import ports

SECONDS = 5.0
NOBODY = (
    "nobody is told of requests: no connected channel has a home_channel. Who decides has to look at the page"
    " /approvals, or at frontdesk confirm list"
)


def examine(loaded: Config, anchor: str | None) -> Iterator[Finding]:
    yield _approvers(loaded)
    yield _service(loaded)
    yield _log(loaded, anchor)
    yield _callbacks(loaded)


def _approvers(loaded: Config) -> Finding:
    """Who can decide, and where they are told."""
    missing = list(_without_token(loaded))
    if missing:
        text = f"no token for {', '.join(missing)}: they cannot decide"
        return Finding(check="approvers", verdict=Verdict.WARNING, text=text)
    homes = _homes(loaded)
    if not homes:
        return Finding(check="approvers", verdict=Verdict.WARNING, text=NOBODY)
    named = ", ".join([OWNER, *sorted(loaded.confirm.people.approvers)])
    return Finding(check="approvers", text=f"{named}; told in {', '.join(homes)}")


def _without_token(loaded: Config) -> Iterator[str]:
    for name, secret in sorted(loaded.confirm.people.approvers.items()):
        try:
            secret()
        except errors.MissingSecret:
            yield name


def _homes(loaded: Config) -> list[str]:
    """The connected platforms that have a home channel."""
    try:
        connected = asyncio.run(_connected(loaded))
    except errors.FrontdeskError:
        return []  # the check of the channels says why
    return sorted(name for name in connected if loaded.gateway.get_home_channel(name))


async def _connected(loaded: Config) -> set[str]:
    channels = build.make_channels(loaded)
    for channel in channels:
        await channel.close()
    return {str(channel.name) for channel in channels}


def _service(loaded: Config) -> Finding:
    confirm = loaded.confirm
    where = f"{confirm.host}:{confirm.port}"
    if not confirm.enabled:
        return Finding(check="confirmations", text="not served on a port: confirm.enabled is false")
    try:
        with ports.listening(confirm.host, confirm.port):
            return Finding(check="confirmations", text=f"{where} is free")
    except errors.AddressInUse:
        return _answering(reaching.address(loaded, None), where)
    except errors.CannotListen as error:
        return Finding(check="confirmations", verdict=Verdict.WARNING, text=one_line(error))


def _answering(url: str, where: str) -> Finding:
    """Whether it is the service that has the port."""
    try:
        told = httpx.get(f"{url}/health", timeout=SECONDS, trust_env=False).json()
        waiting = told["pending_count"]
    except (httpx.HTTPError, ValueError, KeyError, TypeError):
        text = f"{where} is taken by another program: stop that one, or choose another confirm.port"
        return Finding(check="confirmations", verdict=Verdict.WARNING, text=text)
    return Finding(check="confirmations", text=f"served at {where}, {waiting} waiting")


def _log(loaded: Config, anchor: str | None) -> Finding:
    """The end of the log, quickly: audit verify looks at all of it."""
    try:
        known = anchors.read(anchor) if anchor else None
        newest, fault = audit.ask_log(loaded, None, None, lambda log: audits.glance(log, known))
    except (errors.FrontdeskError, OSError) as error:
        return Finding(check="audit log", verdict=Verdict.FAILED, text=one_line(error))
    if fault:
        text = f"row {fault.number} is {fault.change}: {fault.why}. See frontdesk audit verify"
        return Finding(check="audit log", verdict=Verdict.FAILED, text=text)
    if newest == 0:
        return Finding(check="audit log", text="empty")
    beyond = f", and the anchor's row {known.number}" if known else "; no anchor was given to compare it with"
    return Finding(check="audit log", text=f"row {newest}, the newest, holds{beyond}")


def _callbacks(loaded: Config) -> Finding:
    """Programs that are still to be told of a decision."""
    try:
        told = asyncio.run(_owed(loaded))
    except errors.StoreLocked:
        return Finding(check="callbacks", text="not looked for: another program has the store")
    except errors.FrontdeskError as error:
        return Finding(check="callbacks", verdict=Verdict.WARNING, text=one_line(error))
    if told["overdue"]:
        text = f"{told['overdue']} of {told['owed']} are overdue: is a service running, with its secret?"
        return Finding(check="callbacks", verdict=Verdict.WARNING, text=text)
    return Finding(check="callbacks", text=f"{told['owed']} waiting" if told["owed"] else "none waiting")


async def _owed(loaded: Config) -> dict[str, int]:
    async with reach.reach(loaded) as office:
        callbacks: dict[str, int] = (await office.status())["callbacks"]
        return callbacks
