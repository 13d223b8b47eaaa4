"""``frontdesk audit``: what was asked, decided and carried out, and that nobody has changed it since."""

import asyncio
import os
import sys
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing, nullcontext
from pathlib import Path
from typing import BinaryIO, TypeVar

import click
import msgspec

from frontdesk import config, errors
from frontdesk.app.auditlog import AuditLog, ExportedRow, exported, verify_all
from frontdesk.app.opening import open_store, without_creating
from frontdesk.cli import anchors, output
from frontdesk.cli.confirm import reaching
from frontdesk.cli.output import Report
from frontdesk.config import Config
from frontdesk.confirm.client import Client
from frontdesk.confirm.steps import say
from frontdesk.flow import audits
from frontdesk.flow.audits import Verified
from frontdesk.flow.confirmations.confirming import ConfirmationService
from frontdesk.model.audit import Row, Standings
from frontdesk.model.confirmations import Settings

TOLD_ROWS = 100_000
"""So often the progress is told."""
DEFAULT_TAIL = 20
EMPTY = "The log is empty."

T = TypeVar("T")


class FarAuditLog(AuditLog):
    """The log of a service that runs: only approvers see it."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def newest(self) -> int:
        told = await self._client.talk(say("GET", "/audit?view=events&limit=1"))
        return max((entry["number"] for entry in told["entries"]), default=0)

    async def rows(self, after: int, last: int | None = None) -> AsyncGenerator[Row, None]:
        """A service ends what it tells now and then, and is asked again."""
        while last is None or after < last:
            before = after
            async with aclosing(self._client.follow(after)) as following:
                async for row in following:
                    after = row.number
                    yield row
                    if last is not None and after >= last:
                        return
            if after == before and last is not None:
                why = f"it told rows up to {after} of {last}"
                raise errors.ServiceUnreachable(url=self._client.url, why=why)

    async def stands_after(self, after: int) -> Standings:
        told = await self._client.talk(say("GET", f"/audit/standings?after={after}"))
        return msgspec.convert(told, Standings)


def ask_log(
    loaded: Config,
    question: Callable[[AuditLog], Awaitable[T]],
    *,
    db_path: str | None = None,
    url: str | None = None,
) -> T:
    """What the log in the store answers; told by the service when another process has the store open."""

    async def ask() -> T:
        store = without_creating(config.sqlite_url(Path(db_path)) if db_path else loaded.store_url)
        try:
            # What somebody did to it is to be found out, not to be kept from looking.
            opened = await open_store(store, upgrade=False, guarded=False)
        except errors.StoreLocked as held:
            return await question(await _far_log(loaded, url, held))
        try:
            return await question(AuditLog(ConfirmationService(opened, Settings())))
        finally:
            await opened.close()

    return asyncio.run(ask())


async def _far_log(loaded: Config, url: str | None, held: errors.StoreLocked) -> AuditLog:
    try:
        log = FarAuditLog(await reaching.reach_service(loaded, url))
        await log.newest()
    except (errors.ServiceUnreachable, errors.MissingSecret) as error:
        held.add_note(f"The service could not be asked instead: {error}")
        raise held from error
    return log


def located(command: Callable[..., None]) -> Callable[..., None]:
    """A command that is told where the log is: ``db_path``, ``url``."""
    db_path = click.option("--db-path", metavar="FILE", help="The file that confirm serve --db-path has.")
    return db_path(reaching.URL(command))


@click.group()
def command() -> None:
    """Verify, export and follow the log of what was asked and decided.

    It is read from the store; where a gateway or the service has that open, they are asked as an approver.
    """


@command.command()
@click.option(
    "--anchor",
    metavar="FILE|URL",
    help="Check the log against the last line of this file, and add the newest row to it. An address is asked"
    " with GET, and told the newest row with POST.",
)
@click.option(
    "--new-anchor",
    "begins",
    is_flag=True,
    help="Begin the anchor when there is none in that place; without this it is an error, since somebody may"
    " have removed it.",
)
@click.option(
    "--from",
    "exported",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Verify what audit export wrote.",
)
@located
@output.answering
def verify(
    config_file: Path | None, anchor: str | None, begins: bool, exported: Path | None, **where: str | None
) -> Report:
    """Check that every row follows the one before it and can be true after it, and that the requests and
    rules in the store are as the log says. The exit code is 1 when something is not, which is named.

    Only an anchor, kept where nobody can change both, shows that rows at the end were taken away or that the
    whole log was written anew.
    """
    if (file := where["db_path"]) and not Path(file).is_file():
        raise click.ClickException(f"There is no file {file}: nothing was verified.")
    if begins and not anchor:
        raise click.UsageError("--new-anchor needs --anchor: where should it be?")
    known = anchors.read(anchor, begins=begins) if anchor else None
    if exported:
        verified = asyncio.run(audits.verify(_counted(_exported(exported)), known))
    else:
        loaded = config.load(config_file)
        verified = ask_log(loaded, lambda log: verify_all(log, known, _counted), **where)
    if anchor and verified.whole:
        anchors.keep(anchor, verified.anchor, known)
    return Report(verified, _told(verified), good=verified.whole)


def _told(verified: Verified) -> str:
    if fault := verified.fault:
        return f"Row {fault.number} is {fault.change}: {fault.why}. {verified.rows} rows before it hold."
    if found := verified.contradictions:
        lines = [f"{each.id}: {each.why}." for each in found]
        return "\n".join((f"{verified.rows} rows hold, and the store is not as they say.", *lines))
    if verified.anchor:
        return f"{verified.rows} rows hold. The newest: {verified.anchor.line}"
    return EMPTY


async def _counted(batches: AsyncIterator[Sequence[Row]]) -> AsyncIterator[Sequence[Row]]:
    """The same, while whoever waits is told now and then how far it is."""
    counted = 0
    async for batch in batches:
        yield batch
        counted += len(batch)
        if counted % TOLD_ROWS < len(batch):
            click.echo(f"{counted:,} rows …", err=True)


async def _exported(file: Path) -> AsyncIterator[Sequence[Row]]:
    with file.open("rb") as opened:
        while lines := opened.readlines(audits.ROWS_AT_ONCE * 400):
            yield list(map(_read_line, lines))


def _read_line(line: bytes) -> Row:
    try:
        found = msgspec.json.decode(line, type=ExportedRow)
    except msgspec.MsgspecError as error:
        raise errors.InvalidInput(what="The file", why=f"a line of it is no row ({error})") from error
    return Row(number=found.number, body=found.body.encode(), previous=found.previous, hash=found.hash)


@command.command()
@click.option(
    "-o",
    "--output",
    "file",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write here.",
)
@located
@click.pass_obj
def export(config_file: Path | None, /, file: Path | None, **where: str | None) -> None:
    """Write the log as lines of JSON, which audit verify --from can check anywhere."""
    loaded = config.load(config_file)
    with open(file, "wb", opener=_for_owner) if file else nullcontext(sys.stdout.buffer) as opened:
        written = ask_log(loaded, lambda log: _write(_counted(log.pages()), opened), **where)
    if file:
        click.echo(f"{written} rows are in {file}.", err=True)


def _for_owner(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


async def _write(batches: AsyncIterable[Sequence[Row]], file: BinaryIO) -> int:
    written = 0
    async for batch in batches:
        file.writelines(msgspec.json.encode(exported(row)) + b"\n" for row in batch)
        written += len(batch)
    file.flush()
    return written


@command.command()
@click.option("--db-path", metavar="FILE", help="The file that confirm serve --db-path has.")
@output.answering
def guard(config_file: Path | None, db_path: str | None) -> Report:
    """Put back the triggers that let nobody change the log, where they are missing.

    Somebody has removed them: look at the log with audit verify first.
    """
    url = config.sqlite_url(Path(db_path)) if db_path else config.load(config_file).store_url
    restored = asyncio.run(_guard(url))
    told = f"Put back: {', '.join(restored)}." if restored else "The log is guarded."
    return Report({"restored": restored}, told)


async def _guard(url: str) -> Sequence[str]:
    async with await open_store(without_creating(url), upgrade=False, guarded=False) as opened:
        return await opened.confirmations.guard()


@command.command()
@click.option(
    "-n", "--rows", default=DEFAULT_TAIL, show_default=True, type=click.IntRange(0), help="How many."
)
@click.option("-f", "--follow", is_flag=True, help="Go on with what happens, until Ctrl-C.")
@located
@output.JSON
@click.pass_obj
def tail(config_file: Path | None, /, rows: int, follow: bool, as_json: bool, **where: str | None) -> None:
    """Show the newest rows, and with -f those to come."""
    ask_log(config.load(config_file), lambda log: _tail(log, rows, follow, as_json), **where)


async def _tail(log: AuditLog, rows: int, follow: bool, as_json: bool) -> None:
    newest = await log.newest()
    if newest == 0 and not follow and not as_json:
        output.show(EMPTY)
    after = max(0, newest - rows)
    async with aclosing(log.rows(after, None if follow else newest)) as rows_to_show:
        async for row in rows_to_show:
            _show(row, as_json)


def _show(row: Row, as_json: bool) -> None:
    """A row that cannot be read was changed by somebody; audit verify says more."""
    entry = row.readable
    if as_json:
        known = msgspec.to_builtins(entry) if entry else {"kind": "unreadable"}
        output.show_json_line({"number": row.number, "hash": row.hash} | known)
    elif entry:
        facts = " ".join(f"{name}={value}" for name, value in entry.facts.items())
        about = f"{entry.kind:<14} {entry.confirmation_id or ''} {entry.actor} {facts}".replace("\n", " ")
        output.show(f"{row.number:>6} {output.local_time(entry.at.isoformat())} {about}")
    else:
        output.show(f"{row.number:>6} unreadable: audit verify tells whether it was changed")
