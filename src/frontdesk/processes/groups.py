"""A program with all that it started in its process group, and the moment of its exit."""

import asyncio
import os
import signal
import subprocess
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress

from frontdesk.processes import keeping


class Group:
    """Started, signalled and ended as one. When the program ends, whatever it left in its group does too."""

    def __init__(self, child: subprocess.Popen[bytes]) -> None:
        self.pid = child.pid
        self.child = child
        self.exited = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        threading.Thread(target=self._watch, name=f"program-{child.pid}", daemon=True).start()

    @classmethod
    def start(
        cls,
        command: Sequence[str],
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        stderr: int = subprocess.PIPE,
    ) -> "Group":
        """Start it in a session of its own, so that a ^C in the terminal does not reach it.

        Raises OSError when it cannot be started, and ValueError for arguments that no program can have.
        """
        pipe = subprocess.PIPE
        child = subprocess.Popen(
            command,
            bufsize=0,
            stdin=pipe,
            stdout=pipe,
            stderr=stderr,
            cwd=cwd,
            env=keeping.marked(env),
            start_new_session=True,
        )
        keeping.add(child.pid)
        return cls(child)

    @property
    def code(self) -> int:
        """What it ended with, negative for a signal."""
        return self.child.returncode or 0

    def signal(self, number: signal.Signals) -> None:
        # After the exit the number may be another group's; what was left of ours got its SIGKILL then.
        if not self.exited.is_set():
            # A group of which only corpses are left may not be signalled everywhere.
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, number)

    async def ends_within(self, seconds: float) -> bool:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.exited.wait()
        return self.exited.is_set()

    def _watch(self) -> None:
        """Wait, in a thread of its own, for the exit."""
        with suppress(ChildProcessError):  # somebody else was told of it
            if hasattr(os, "waitid"):
                # The corpse keeps the number of the group for us until the loop has ended the others.
                os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
            else:
                self.child.wait()
        try:
            self._loop.call_soon_threadsafe(self._bury)
        except RuntimeError:  # the loop was closed before; nobody waits
            self.child.wait()

    def _bury(self) -> None:
        self.signal(signal.SIGKILL)
        keeping.remove(self.pid)
        self.child.wait()
        self.exited.set()
