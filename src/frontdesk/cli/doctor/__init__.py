"""``frontdesk doctor``: what stands in the way of running, and what to do about it."""

import asyncio
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from frontdesk import SessionStore, config, errors
from frontdesk.app import build, opening
from frontdesk.app.office import Office
from frontdesk.cli import one_line, output
from frontdesk.cli.asking import reach_gateway
from frontdesk.cli.doctor import confirmations
from frontdesk.cli.doctor.findings import Check, Finding, Severity, examine, failed, warning
from frontdesk.cli.output import Report
from frontdesk.config import Config
from frontdesk.web import owner, ports

LEAST_FREE_MIB = 500
IN_USE = "in use by the running gateway"
MIB = 1024 * 1024
INSPECTION_SECONDS = 20.0
"""How long a large database is looked through for damage."""
OLDEST_PYTHON = (3, 11)


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
    for check, look in (CHECKS | confirmations.checks(anchor)).items():
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
    if confirmations.find_own(loaded):
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


async def _ask_gateway(loaded: Config) -> dict[str, Any]:
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


def _agent(loaded: Config) -> Finding:
    """The agent can be made, and what its turns will need is there and answers."""
    try:
        if program := _missing_program(loaded):
            text = f"{loaded.driver}: there is no program {program!r}. Install it, or correct agent.command"
            return failed(text)
        doubt = asyncio.run(build.try_agent(loaded))
    except errors.MissingSecret:  # the check of the secrets says so, too
        raise
    except errors.FrontdeskError as error:
        return failed(f"{loaded.driver}: {one_line(error)}")
    if doubt:
        return warning(f"{loaded.driver}: {doubt}")
    return Finding(text=loaded.driver)


def _missing_program(loaded: Config) -> str | None:
    """The program of an agent that is one, when it is nowhere to be found."""
    program, *_ = getattr(build.agent_options(loaded), "command", None) or [None]
    if program is None:
        return None
    place = Path(loaded.running.working_dir or ".").expanduser().absolute() / program
    return None if shutil.which(place if os.sep in program else program) else program


def _channels(loaded: Config) -> Finding:
    """The channels can be made."""
    names = [(each.name, each.account) for each in asyncio.run(build.try_channels(loaded))]
    return Finding(text=", ".join(f"{name}@{account}" if account else name for name, account in names))


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


CHECKS: dict[str, Check] = {
    "disk": _disk,
    "store": _store,
    "agent": _agent,
    "channels": _channels,
    "secrets": _secrets,
    "checkpoints": _git,
    "address": _port,
    "gateway": _gateway,
}
