"""Hooks that are programs: each event is JSON on the standard input."""

import asyncio
import subprocess
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from frontdesk import errors
from frontdesk.contracts.hooks import Commands, HookEvent, LoadTranscript, idempotency_key
from frontdesk.logs import get_logger
from frontdesk.model.policies import EndReason
from frontdesk.model.sessions import SessionEntry
from frontdesk.processes import Group

log = get_logger(__name__)

ANSWERS: Mapping[int | None, bool] = {0: True, 1: False}
MAX_OUTPUT_BYTES = 4096
"""So much of what a program writes is kept; the rest is read and dropped."""
CHUNK_BYTES = 64 * 1024
LAST_SECONDS = 2.0
"""How long the end of a killed program and of its output is waited for."""


class Finished(msgspec.Struct, frozen=True, kw_only=True):
    code: int | None
    """What it ended with, negative for a signal; None when its time was up."""
    output: str


class CommandHooks:
    """Runs the command of an event, if there is one. What becomes of it is logged and stops nothing.

    Raises HookNotStarted when the command did not run.
    """

    def __init__(self, commands: Commands) -> None:
        self._commands = commands

    async def on_session_start(self, entry: SessionEntry) -> None:
        await self._run(HookEvent.START, entry, {})

    async def on_session_end(self, entry: SessionEntry, reason: EndReason) -> None:
        await self._run(HookEvent.END, entry, {"reason": str(reason)})

    async def on_session_finalize(
        self, entry: SessionEntry, reason: EndReason, load_transcript: LoadTranscript
    ) -> None:
        if not self._commands.on_session_finalize:
            return
        try:
            transcript = await load_transcript()
        except errors.StoreError as error:
            raise self._not_started(HookEvent.FINALIZE, entry, error) from error
        await self._run(HookEvent.FINALIZE, entry, {"reason": str(reason), "transcript": transcript})

    async def has_active_processes(self, session_key: str) -> bool:
        """The exit code is the answer: 0 yes, 1 no."""
        command = self._commands.has_active_processes
        if not command:
            return False
        asked = msgspec.json.encode({"event": "has_active_processes", "session_key": session_key})
        finished = await run(command, asked, self._commands.timeout_seconds)
        if finished.code not in ANSWERS:
            raise errors.HookUndecided(name=command[0], code=finished.code, output=finished.output)
        return ANSWERS[finished.code]

    async def _run(self, event: HookEvent, entry: SessionEntry, facts: Mapping[str, Any]) -> None:
        command, seconds = self._commands.command_for(event), self._commands.timeout_seconds
        if not command:
            return
        told = {
            "event": str(event),
            "idempotency_key": idempotency_key(entry, event),
            "session": entry.to_dict(),
            **facts,
        }
        try:
            finished = await run(command, msgspec.json.encode(told), seconds)
        except (OSError, ValueError) as error:
            raise self._not_started(event, entry, error) from error
        _report(finished, seconds, self._about(event, entry))

    def _not_started(self, event: HookEvent, entry: SessionEntry, error: Exception) -> errors.HookNotStarted:
        about = self._about(event, entry)
        log.warning("hook_not_started", why=str(error), **about)
        return errors.HookNotStarted(name=about["hook"], why=str(error))

    def _about(self, event: HookEvent, entry: SessionEntry) -> dict[str, str]:
        command = self._commands.command_for(event)
        return {"hook": command[0], "hook_event": str(event), "session": entry.session_id}


def _report(finished: Finished, seconds: float, about: dict[str, str]) -> None:
    output = finished.output or None
    if finished.code is None:
        log.warning("hook_timed_out", seconds=seconds, output=output, **about)
    elif finished.code:
        log.warning("hook_failed", code=finished.code, output=output, **about)
    else:
        log.info("hook_finished", output=output, **about)


async def run(command: Sequence[str], data: bytes, seconds: float) -> Finished:
    """Run a program with ``data`` as its input. Whatever it has started in its group is killed with it.

    Raises OSError when it cannot be started, and ValueError for arguments that no program can have.
    """
    group = await Group.start(command, stderr=subprocess.STDOUT)
    output = bytearray()
    reading = asyncio.create_task(_read(group.stdout, output))
    try:
        # A program that does not read its input is no error.
        group.stdin.write(data)
        group.stdin.close()
        in_time = await group.ends_within(seconds)
    finally:
        await group.kill(reading, LAST_SECONDS, LAST_SECONDS)
    return Finished(code=group.code if in_time else None, output=output.decode(errors="replace").strip())


async def _read(stream: asyncio.StreamReader, kept: bytearray) -> None:
    """Keep the beginning of what a program writes."""
    while chunk := await stream.read(CHUNK_BYTES):
        kept += chunk[: MAX_OUTPUT_BYTES - len(kept)]
