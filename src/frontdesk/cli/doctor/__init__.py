"""``frontdesk doctor``: what stands in the way of running, and what to do about it."""

import asyncio
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import msgspec

from frontdesk import SessionStore, config, errors
from frontdesk.app import build, opening
from frontdesk.app.office import Office
from frontdesk.cli import one_line, output
from frontdesk.cli.asking import reach_gateway
from frontdesk.cli.doctor import confirmations
from frontdesk.cli.doctor.findings import Finding, Verdict
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
@click.option("--json", "as_json", is_flag=True, help="Write JSON.")
@click.pass_obj
def command(config_file: Path | None, anchor: str | None, as_json: bool) -> None:
    """Check whether everything is there that frontdesk needs.

    Changes nothing, except that a missing database is created. The exit code is 1 when something failed.
    """
    findings = list(_examine(config_file, anchor))
    if as_json:
        output.show_json([msgspec.to_builtins(finding) for finding in findings])
    else:
        for finding in findings:
            output.show(f"{finding.verdict:8} {finding.check:14} {finding.text}")
    if any(finding.verdict is Verdict.FAILED for finding in findings):
        sys.exit(1)


def _examine(config_file: Path | None, anchor: str | None) -> Iterator[Finding]:
    yield _python()
    try:
        loaded = config.load(config_file)
    except errors.FrontdeskError as error:
        yield Finding(check="configuration", verdict=Verdict.FAILED, text=one_line(error))
        return
    there = "" if loaded.file.exists() else " (no such file: every setting has its default; frontdesk init)"
    yield Finding(check="configuration", text=f"{loaded.file}{there}")
    checks: tuple[Callable[[Config], Finding], ...] = (
        _disk,
        _store,
        _agent,
        _channels,
        _secrets,
        _git,
        _port,
    )
    for check in checks:
        yield check(loaded)
    yield from _gateway(loaded)
    yield from confirmations.examine(loaded, anchor)


def _python() -> Finding:
    version = sys.version.split()[0]
    if sys.version_info < OLDEST_PYTHON:
        return Finding(check="python", verdict=Verdict.FAILED, text=f"{version}; 3.11 or newer is needed")
    return Finding(check="python", text=version)


def _disk(loaded: Config) -> Finding:
    """Room in the home folder and where the database is."""
    places = {_existing(folder) for folder in (loaded.home, *_folder_of_store(loaded))}
    free = {place: shutil.disk_usage(place).free // MIB for place in sorted(places)}
    verdict = Verdict.WARNING if min(free.values()) < LEAST_FREE_MIB else Verdict.OK
    text = ", ".join(f"{room} MiB free at {place}" for place, room in free.items())
    return Finding(check="disk", verdict=verdict, text=text)


def _existing(folder: Path) -> Path:
    return next(each for each in (folder, *folder.parents) if each.exists())


def _folder_of_store(loaded: Config) -> list[Path]:
    file = opening.file_of(loaded.store_url)
    return [file.absolute().parent] if file else []


def _store(loaded: Config) -> Finding:
    name = config.settings.without_password(loaded.store_url)
    try:
        asyncio.run(_open(loaded))
    except errors.StoreLocked as error:
        return _held(loaded, name, error)
    except errors.OlderDatabase as error:
        return Finding(check="store", verdict=Verdict.WARNING, text=one_line(error))
    except errors.FrontdeskError as error:
        return Finding(check="store", verdict=Verdict.FAILED, text=one_line(error))
    return Finding(check="store", text=name)


def _held(loaded: Config, name: str, error: errors.StoreLocked) -> Finding:
    """A store that something has: what runs for this home, or a stranger to it."""
    if _gateway_runs(loaded):
        return Finding(check="store", text=f"{name}, {IN_USE}")
    if confirmations.find_own(loaded):
        return Finding(check="store", text=f"{name}, in use by the running confirmation service")
    text = f"{name} is in use by {error.holder}: nothing else of frontdesk starts until that has ended"
    return Finding(check="store", verdict=Verdict.WARNING, text=text)


def _gateway(loaded: Config) -> Iterator[Finding]:
    """What the running gateway says of itself."""
    try:
        told = asyncio.run(_ask_gateway(loaded))
    except errors.NoGateway:
        return
    except errors.FrontdeskError as error:
        yield Finding(check="gateway", verdict=Verdict.FAILED, text=one_line(error))
        return
    for trouble in told["troubles"]:
        yield Finding(check="gateway", verdict=Verdict.FAILED, text=" ".join(trouble.split()))
    for warning in told["warnings"]:
        yield Finding(check="gateway", verdict=Verdict.WARNING, text=" ".join(warning.split()))
    if told["ready"]:
        yield Finding(check="gateway", text=f"process {told['process']} is ready")


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
        asyncio.run(_make_agent(loaded))
        if program := _missing_program(loaded):
            text = f"{loaded.driver}: there is no program {program!r}. Install it, or correct agent.command"
            return Finding(check="agent", verdict=Verdict.FAILED, text=text)
        doubt = asyncio.run(build.try_agent(loaded))
    except errors.MissingSecret as error:  # the check of the secrets says so, too
        return Finding(check="agent", verdict=Verdict.FAILED, text=one_line(error))
    except errors.FrontdeskError as error:
        return Finding(check="agent", verdict=Verdict.FAILED, text=f"{loaded.driver}: {one_line(error)}")
    if doubt:
        return Finding(check="agent", verdict=Verdict.WARNING, text=f"{loaded.driver}: {doubt}")
    return Finding(check="agent", text=loaded.driver)


def _missing_program(loaded: Config) -> str | None:
    """The program of an agent that is one, when it is nowhere to be found."""
    options = build.agent_options(loaded)
    command: tuple[str, ...] = getattr(options, "command", ())
    if not command:
        return None
    program = command[0]
    place = Path(loaded.running.working_dir or ".").expanduser().absolute() / program
    return None if shutil.which(place if os.sep in program else program) else program


async def _make_agent(loaded: Config) -> None:
    await build.make_agent(loaded).close()


def _channels(loaded: Config) -> Finding:
    """The channels can be made."""
    try:
        names = asyncio.run(_make_channels(loaded))
    except errors.FrontdeskError as error:
        return Finding(check="channels", verdict=Verdict.FAILED, text=one_line(error))
    return Finding(check="channels", text=", ".join(names))


async def _make_channels(loaded: Config) -> list[str]:
    names = []
    for channel in build.make_channels(loaded):
        names.append(f"{channel.name}@{channel.account}" if channel.account else channel.name)
        await channel.close()
    return names


def _secrets(loaded: Config) -> Finding:
    """What the settings of the agent and the channels name is there."""
    try:
        missing = build.missing_secrets(loaded)
    except errors.FrontdeskError:
        text = "not looked for: the settings above are to be corrected first"
        return Finding(check="secrets", verdict=Verdict.WARNING, text=text)
    if missing:
        return Finding(check="secrets", verdict=Verdict.FAILED, text=" ".join(map(one_line, missing)))
    return Finding(check="secrets", text="all there")


def _git(loaded: Config) -> Finding:
    if not loaded.running.checkpoints:
        return Finding(check="checkpoints", text="off")
    if shutil.which("git"):
        return Finding(check="checkpoints", text="on")
    text = "on, but there is no git: install it, or set checkpoints.enabled = false"
    return Finding(check="checkpoints", verdict=Verdict.FAILED, text=text)


def _port(loaded: Config) -> Finding:
    where = f"{loaded.host}:{loaded.port}"
    try:
        with ports.listening(loaded.host, loaded.port):
            return Finding(check="address", text=f"{where} is free")
    except errors.CannotListen as error:
        if isinstance(error, errors.AddressInUse) and _gateway_runs(loaded):
            return Finding(check="address", text=f"{where}, {IN_USE}")
        return Finding(check="address", verdict=Verdict.WARNING, text=one_line(error))
