"""``frontdesk doctor``: what stands in the way of running, and what to do about it."""

import asyncio
import os
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click
import msgspec

from frontdesk import SessionStore, config, errors, files
from frontdesk.app import auditlog, build, connecting, health, opening, sockets
from frontdesk.app.office import Office
from frontdesk.app.office.work import GatewayStatus
from frontdesk.cli import anchors, audit, one_line, output
from frontdesk.cli.asking import ask, reach_gateway
from frontdesk.cli.output import Report
from frontdesk.config import Config
from frontdesk.config.confirm import OWNER
from frontdesk.model.findings import Finding, Severity, failed, note, warning
from frontdesk.web import bounds, owner, ports
from frontdesk.web.bounds import PortLimits
from frontdesk.web.confirmations.serving import check_host

LEAST_FREE_MIB = 500
IN_USE = "in use by the running gateway"
MIB = 1024 * 1024
INSPECTION_SECONDS = 20.0
"""How long a large database is looked through for damage."""
OLDEST_PYTHON = (3, 11)
NOBODY = (
    "nobody is told of requests: no connected channel has a home_channel. Who decides has to look at the page"
    " /approvals, or at frontdesk confirm list"
)

NOT_KNOWN = (
    "not known whether any are overdue: only the program that has the store could tell. Its log has"
    " callback_failed for each that fails"
)


Check = Callable[[Config], Finding | list[Finding]]


def examine(check: str, look: Check, loaded: Config) -> list[Finding]:
    """What a check finds; what stands in its way is a finding, too."""
    try:
        found = look(loaded)
    except errors.FrontdeskError as error:
        found = failed(one_line(error))
    several = [found] if isinstance(found, Finding) else found
    return [msgspec.structs.replace(each, check=check) for each in several]


@click.command()
@click.option(
    "--anchor", metavar="FILE|URL", help="Compare the audit log with the last anchor that is kept there."
)
@output.answering
def command(config_file: Path | None, anchor: str | None) -> Report:
    """Check whether everything is there that frontdesk needs.

    Changes nothing, except that a missing database is created. The exit code is 1 when something failed.
    """
    findings = list(_examine(config_file, anchor))
    lines = [f"{finding.verdict:8} {finding.check:14} {finding.text}" for finding in findings]
    good = not any(finding.verdict is Severity.FAILED for finding in findings)
    return Report(findings, "\n".join(lines), good=good)


def _examine(config_file: Path | None, anchor: str | None) -> Iterator[Finding]:
    yield _python()
    try:
        loaded = config.load(config_file)
    except errors.FrontdeskError as error:
        yield Finding(check="configuration", verdict=Severity.FAILED, text=one_line(error))
        return
    there = "" if loaded.file.exists() else " (no such file: every setting has its default; frontdesk init)"
    yield Finding(check="configuration", text=f"{loaded.file}{there}")
    checks: dict[str, Check] = {**CHECKS, "audit log": partial(_log, anchor), "callbacks": _callbacks}
    for check, look in checks.items():
        yield from examine(check, look, loaded)


def _python() -> Finding:
    version = sys.version.split()[0]
    if sys.version_info < OLDEST_PYTHON:
        return Finding(check="python", verdict=Severity.FAILED, text=f"{version}; 3.11 or newer is needed")
    return Finding(check="python", text=version)


def _disk(loaded: Config) -> Finding:
    """Room in the home folder and where the database is."""
    file = opening.file_of(loaded.store_url)
    places = {
        next(each for each in (folder, *folder.parents) if each.exists())
        for folder in (loaded.home, *([file.absolute().parent] if file else []))
    }
    free = {place: shutil.disk_usage(place).free // MIB for place in sorted(places)}
    verdict = Severity.WARNING if min(free.values()) < LEAST_FREE_MIB else Severity.OK
    text = ", ".join(f"{room} MiB free at {place}" for place, room in free.items())
    return Finding(verdict=verdict, text=text)


def _files(loaded: Config) -> Finding:
    """Those that people and agents sent, and the program that listens to them."""
    folder, listens = loaded.home / build.FILES, loaded.files.transcribe
    kept = files.survey(folder)
    if not kept.is_private:
        return warning(f"others of this machine can look into {folder}: chmod 700 {folder}")
    if listens and not shutil.which(listens[0]):
        return warning(f"files.transcribe: there is no program {listens[0]}; voice messages stay unread")
    return Finding(text=f"{kept.files} kept, {-(-kept.size // MIB)} MiB, in {folder}")


def _store(loaded: Config) -> Finding:
    name = config.settings.without_password(loaded.store_url)
    try:
        asyncio.run(_open(loaded))
    except errors.StoreLocked as error:
        return _held(loaded, name, error)
    except errors.OlderDatabase as error:
        return warning(one_line(error))
    return Finding(text=name)


def _held(loaded: Config, name: str, error: errors.StoreLocked) -> Finding:
    """A store that something has: what runs for this home, or a stranger to it."""
    if _gateway_runs(loaded):
        return Finding(text=f"{name}, {IN_USE}")
    if asyncio.run(_find_own(loaded)):
        return Finding(text=f"{name}, in use by the running confirmation service")
    text = f"{name} is in use by {error.holder}: nothing else of frontdesk starts until that has ended"
    return warning(text)


def _gateway(loaded: Config) -> list[Finding]:
    """What the running gateway says of itself."""
    try:
        told = asyncio.run(_ask_gateway(loaded))
    except errors.NoGateway:
        return []
    found = [failed(" ".join(trouble.split())) for trouble in told["troubles"]]
    found += [warning(" ".join(doubt.split())) for doubt in told["warnings"]]
    return [*found, *([Finding(text=f"process {told['process']} is ready")] if told["ready"] else [])]


async def _ask_gateway(loaded: Config) -> GatewayStatus:
    return await owner.far(Office, owner.OFFICE, await reach_gateway(loaded.home)).status()


def _gateway_runs(loaded: Config) -> bool:
    try:
        asyncio.run(reach_gateway(loaded.home))
    except errors.GatewayUnreachable:
        return False
    return True


async def _open(loaded: Config) -> None:
    """Open it, write as a message would, and look for damage for a while."""
    async with await SessionStore.open(loaded.store_url, loaded.gateway, upgrade=False) as sessions:
        await sessions.has_any_sessions()
        await sessions.store.check()
        await sessions.store.inspect(INSPECTION_SECONDS)


def _agents(loaded: Config) -> list[Finding]:
    """The agents can be made, and what their turns will need is there and answers."""
    return [_agent(loaded), *(_agent(loaded, profile) for profile in build.profiles_with_agents(loaded))]


def _agent(loaded: Config, profile: str | None = None) -> Finding:
    driver = build.driver_of(loaded, profile)
    name = f"profile {profile}: {driver}" if profile else driver
    try:
        if program := _missing_program(loaded, profile):
            table = f"profiles.{profile}.agent" if profile else "agent"
            return failed(f"{name}: there is no program {program!r}. Install it, or correct {table}.command")
        doubt = asyncio.run(build.try_agent(loaded, profile))
    except errors.MissingSecret:  # the check of the secrets says so, too
        raise
    except errors.FrontdeskError as error:
        return failed(f"{name}: {one_line(error)}")
    return warning(f"{name}: {doubt}") if doubt else Finding(text=name)


def _missing_program(loaded: Config, profile: str | None) -> str | None:
    """The program of an agent that is one, when it is nowhere to be found."""
    program, *_ = getattr(build.agent_options(loaded, profile), "command", None) or [None]
    if program is None:
        return None
    place = Path(build.working_dir(loaded, profile)) / program
    return None if shutil.which(place if os.sep in program else program) else program


def _channels(loaded: Config) -> Finding:
    """The channels can be made."""
    return Finding(text=", ".join(map(health.name_of, asyncio.run(build.try_channels(loaded)))))


def _platforms(loaded: Config) -> list[Finding]:
    """What each platform says of our account there."""
    try:
        return asyncio.run(connecting.examine_all(loaded, in_use=_gateway_runs(loaded)))
    except errors.FrontdeskError:
        return []  # the check of the channels, or that of the secrets, says why


def _secrets(loaded: Config) -> Finding:
    """What the settings of the agent and the channels name is there."""
    try:
        missing = build.missing_secrets(loaded)
    except errors.FrontdeskError:
        return warning("not looked for: the settings above are to be corrected first")
    if missing:
        return failed(" ".join(map(one_line, missing)))
    return Finding(text="all there")


def _git(loaded: Config) -> Finding:
    if not loaded.running.checkpoints:
        return Finding(text="off")
    if shutil.which("git"):
        return Finding(text="on")
    return failed("on, but there is no git: install it, or set checkpoints.enabled = false")


def _port(loaded: Config) -> Finding:
    where = f"{loaded.host}:{loaded.port}"
    try:
        with ports.listening(loaded.host, loaded.port):
            return Finding(text=f"{where} is free")
    except errors.CannotListen as error:
        if isinstance(error, errors.AddressInUse) and _gateway_runs(loaded):
            return Finding(text=f"{where}, {IN_USE}")
        return warning(one_line(error))


def _connections(loaded: Config) -> Finding:
    """How many there may be at once, where it runs or would run, and how many were cut off."""
    limits = PortLimits(connections=loaded.connections)
    running = asyncio.run(_running_ports(loaded))
    own = [limits.places(bounds.files_to_have(limits))]
    most = min([port["most"] for port in running if port["name"] != ports.OWN] or own)
    cut: Counter[str] = sum((Counter(port["refused"]) for port in running), Counter())
    told = f"; cut off: {', '.join(f'{cut[why]} {why}' for why in sorted(cut)) or 'none'}" if running else ""
    text = f"{most} connections at a time on each port"
    if most >= limits.connections:
        return Finding(text=f"{text}{told}")
    more = f"raise the hard limit of open files (ulimit -Hn, LimitNOFILE=) to {limits.files}, and restart"
    return warning(f"{text}, not the {limits.connections} of server.connections: {more}{told}")


async def _running_ports(loaded: Config) -> list[dict[str, Any]]:
    found = await sockets.find_own(loaded.home)
    return await found[0].call("GET", "/ports") if found else []


def _approvers(loaded: Config) -> Finding:
    """Who can decide, and where they are told."""
    if missing := list(_without_token(loaded)):
        return warning(f"no usable token for {', '.join(missing)}: they cannot decide")
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


async def _find_own(loaded: Config) -> Own | None:
    """The service of this home, which answers on the owner's socket."""
    found = await sockets.find_own(loaded.home)
    if found is None:
        return None
    client, greeting = found
    pending = None
    with suppress(errors.GatewayUnreachable):
        pending = (await client.call("GET", "/health"))["pending_count"]
    return Own(served_at=greeting.get("confirmations"), pending=pending)


def _service(loaded: Config) -> Finding:
    confirm = loaded.confirm
    if not confirm.enabled:
        return Finding(text="not served on a port: confirm.enabled is false")
    check_host(confirm.mode, confirm.host, loaded.names)
    own, where = asyncio.run(_find_own(loaded)), f"{confirm.host}:{confirm.port}"
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
        newest, fault = audit.ask_log(loaded, lambda log: auditlog.glance(log, known))
    except errors.OlderDatabase as error:
        return warning(one_line(error))
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
        return note(NOT_KNOWN)
    except errors.FrontdeskError as error:
        return warning(one_line(error))
    if told["overdue"]:
        late = f"{told['overdue']} of {told['owed']} are overdue"
        return warning(f"{late}: is a service running, with its secret?")
    return Finding(text=f"{told['owed']} waiting" if told["owed"] else "none waiting")


CHECKS: dict[str, Check] = {
    "disk": _disk,
    "files": _files,
    "store": _store,
    "agent": _agents,
    "channels": _channels,
    "platforms": _platforms,
    "secrets": _secrets,
    "checkpoints": _git,
    "address": _port,
    "connections": _connections,
    "gateway": _gateway,
    "approvers": _approvers,
    "confirmations": _service,
}
