"""A crowd at the program, which may have few files open, and who wants something there."""

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpx

from frontdesk.app import sockets
from tests.acceptance import crowd, program
from tests.acceptance.services import READY, Service

COUNT = 2_000
FILES = 1_024
ROOT = Path(__file__).parents[2]
PATIENCE_SECONDS = 10.0
"""Of somebody who waits for an answer: fewer seconds than a connection may be silent."""
KINDS = ["all", *(each.__name__ for each in crowd.KINDS)]


class Surrounded(Service):
    """A service with a page that people crowd at."""

    @property
    def page(self) -> str:
        return self.greeting.split("Approvers decide at ")[1].split("/approvals")[0]

    @property
    def socket(self) -> Path:
        return sockets.service_socket_of(self.home / ".frontdesk")

    @property
    def ports(self) -> list[str]:
        return [each.removeprefix("http://") for each in (self.url, self.page)]

    def ask_with_token(self) -> int:
        headers = {"authorization": f"Bearer {self.token}"}
        url = f"{self.url}/confirm"
        return httpx.get(url, headers=headers, timeout=PATIENCE_SECONDS, trust_env=False).status_code

    def ask_for_page(self) -> int:
        return httpx.get(f"{self.page}/approvals", timeout=PATIENCE_SECONDS, trust_env=False).status_code

    def ask_as_owner(self) -> int:
        with (
            sockets.address_of(self.socket) as address,
            httpx.Client(transport=httpx.HTTPTransport(uds=address), timeout=PATIENCE_SECONDS) as http,
        ):
            return http.get("http://localhost/health").status_code

    @property
    def memory_mib(self) -> int:
        """The most that the process had."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.split("VmHWM:")[1].split()[0]) // 1024


@contextmanager
def limited_service(home: Path, files: int = FILES) -> Iterator[Surrounded]:
    """One that may not have more files open, whatever it asks for."""
    limited = ("/bin/sh", "-c", f'ulimit -n {files} && exec "$@"', "sh")
    serving = ("confirm", "serve", "--port", "0", "--page-port", "0", "--log-level", "warning")
    with (
        (home / "log").open("wb") as log,
        subprocess.Popen(
            [*limited, str(program.FRONTDESK), *serving],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            env=program.environment(home),
            cwd=home,
            bufsize=0,
        ) as process,
    ):
        try:
            yield Surrounded(home, process, program.read_until(process, READY))
        finally:
            process.kill()


@contextmanager
def crowd_at(
    places: Sequence[str], kind: str = "all", count: int = COUNT
) -> Iterator[subprocess.Popen[bytes]]:
    """As many connections as we promise to bear, open at once, each of which comes back when it is cut."""
    command = [sys.executable, "-m", "tests.acceptance.crowd", str(count), kind, *places]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT, bufsize=0) as process:
        try:
            program.read_until(process, "there\n")
            yield process
        finally:
            process.kill()
