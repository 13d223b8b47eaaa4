"""A crowd at the program, which has the number of files of a usual machine, and who wants something there."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import httpx

from frontdesk.app import sockets
from tests.acceptance import program
from tests.acceptance.services import READY, Service

COUNT = 2_000
FILES = 1_024
ROOT = Path(__file__).parents[2]
LIMITED = ("/bin/sh", "-c", f'ulimit -Sn {FILES} && exec "$@"', "sh")
PATIENCE_SECONDS = 10.0
"""Of somebody who waits for an answer: fewer seconds than a connection may be silent."""


@contextmanager
def limited_service(home: Path) -> Iterator[Service]:
    with (
        (home / "log").open("wb") as log,
        subprocess.Popen(
            [*LIMITED, str(program.FRONTDESK), "confirm", "serve", "--port", "0", "--log-level", "warning"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            env=program.environment(home),
            cwd=home,
            bufsize=0,
        ) as process,
    ):
        try:
            yield Service(home, process, program.read_until(process, READY))
        finally:
            process.kill()


@contextmanager
def crowd_at(url: str, kind: str = "") -> Iterator[subprocess.Popen[bytes]]:
    """As many connections as we promise to bear, open at once, each of which comes back when it is cut."""
    where = urlsplit(url)
    command = [
        sys.executable,
        "-m",
        "tests.acceptance.crowd",
        str(where.hostname),
        str(where.port),
        str(COUNT),
    ]
    with subprocess.Popen([*command, kind], stdout=subprocess.PIPE, cwd=ROOT, bufsize=0) as process:
        try:
            program.read_until(process, "there\n")
            yield process
        finally:
            process.kill()


def ask_as_approver(service: Service) -> int:
    headers = {"authorization": f"Bearer {service.token}"}
    url = f"{service.url}/confirm"
    return httpx.get(url, headers=headers, timeout=PATIENCE_SECONDS, trust_env=False).status_code


def ask_as_owner(service: Service) -> int:
    path = sockets.service_socket_of(service.home / ".frontdesk")
    with (
        sockets.address_of(path) as address,
        httpx.Client(transport=httpx.HTTPTransport(uds=address), timeout=PATIENCE_SECONDS) as http,
    ):
        return http.get("http://localhost/health").status_code
