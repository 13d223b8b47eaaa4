"""Starting a program to see whether it can be started."""

from collections.abc import Sequence

from frontdesk import errors
from frontdesk.agents.processes import Process
from frontdesk.formats import quoting

WATCHED_SECONDS = 1.0
KILL_SECONDS = 1.0
MAX_LINE_BYTES = 64 * 1024
WELL = "exit code 0"


async def start_once(command: Sequence[str], cwd: str, env: dict[str, str]) -> None:
    """AgentFailed when the program cannot be started, or gives up before it was asked anything."""
    program = quoting.quote(command[0])
    try:
        process = await Process.start(command, cwd=cwd, env=env, max_line_bytes=MAX_LINE_BYTES)
    except OSError as error:
        raise errors.AgentFailed(why=f"{program} cannot be started: {error.strerror}") from error
    try:
        if await process.ends_within(WATCHED_SECONDS) and (fate := await process.fate()) != WELL:
            said = f": {quoting.clean_text(process.last_words)}" if process.last_words else ""
            raise errors.AgentFailed(why=f"{program} ended before it was asked anything ({fate}){said}")
    finally:
        await process.end(0, KILL_SECONDS)
