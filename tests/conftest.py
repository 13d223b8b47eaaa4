"""What tests of every kind share."""

import asyncio
import functools
import gc
import os
import signal
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx
import hypothesis
import pytest
import uvloop

from frontdesk import SessionStore
from tests import counts, servers
from tests.patience import PATIENCE_SECONDS
from tests.peers import mail
from tests.peers import synapse as homeservers
from tests.schemas import Schemas

# A busy machine is no failure; the reduced run is the same run every time, the full one explores.
hypothesis.settings.register_profile(
    "frontdesk", deadline=None, max_examples=counts.count(30, 1000), derandomize=not counts.proving()
)
hypothesis.settings.load_profile("frontdesk")

TESTS = Path(__file__).parent
ORDER = ("acceptance", "integration", "flow", "contracts", "docs")

# Enough for work at the same time; each connection has to learn every statement anew.
CONNECTIONS = 2

# Files have the same permissions whoever runs the tests, and programs can be interrupted, also where a shell
# runs the tests in the background.
os.umask(0o022)
signal.signal(signal.SIGINT, signal.default_int_handler)

# Nobody cuts the power, and a disk takes half of the time: files are in memory, where there is room for them
# and programs among them can be run. The full run uses the disk.
MEMORY = Path("/dev/shm")
ROOM_BYTES = 4 * 1024**3


def has_room(folder: Path) -> bool:
    if not os.access(folder, os.W_OK):
        return False
    found = os.statvfs(folder)
    return found.f_bavail * found.f_frsize >= ROOM_BYTES and not found.f_flag & os.ST_NOEXEC


if not counts.proving() and "TMPDIR" not in os.environ and has_room(MEMORY):
    os.environ["TMPDIR"] = str(MEMORY)
    tempfile.tempdir = None

# Nor does a busy machine answer within the five seconds that this client waits by itself.
for kind in ("connect", "read", "write", "pool"):
    setattr(httpx._config.DEFAULT_TIMEOUT_CONFIG, kind, PATIENCE_SECONDS)

# Each client of its reads all certificates of the world before its first call, which takes longer than most
# tests do; these are read once.
transports: Any = httpx._transports.default
transports.create_ssl_context = functools.cache(transports.create_ssl_context)

# Until all tests are collected there is nothing but what stays.
gc.disable()


def pytest_asyncio_loop_factories() -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Tests run on the loop that the program runs on."""
    return {"uvloop": uvloop.new_event_loop}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The laboratory first, since it takes longest and mostly waits; those that start programs before those
    that take milliseconds, which fill the gaps at the end; of each kind the files with the most tests."""
    tests = Counter(item.path for item in items)

    def turn(item: pytest.Item) -> tuple[bool, int, int, str]:
        kind = item.path.relative_to(TESTS).parts[0]
        order = ORDER.index(kind) if kind in ORDER else len(ORDER)
        return item.path.name != "test_lab.py", order, -tests[item.path], str(item.path)

    items.sort(key=turn)


def pytest_collection_finish() -> None:
    """Thousands of tests stay as long as the process: what looks for garbage passes over them."""
    gc.freeze()
    gc.enable()


@pytest.fixture
def tell(record_property: Callable[[str, object], None]) -> counts.Tell:
    """For tests that count. What several of them call the same is one number."""
    return lambda what, number: record_property(counts.TRIED, [what, number])


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """What was tried how often; and what was skipped and why, also when nothing was."""
    tell_tried(terminalreporter)
    tell_skipped(terminalreporter)


def tell_tried(terminalreporter: pytest.TerminalReporter) -> None:
    tried: Counter[str] = Counter()
    for report in terminalreporter.stats.get("passed", []):
        for name, value in report.user_properties:
            if name == counts.TRIED:
                what, number = value
                tried[what] += number
    if tried:
        terminalreporter.section("tried", sep="-")
    for what, number in sorted(tried.items()):
        terminalreporter.write_line(f"{number:>11,} {what}")


def tell_skipped(terminalreporter: pytest.TerminalReporter) -> None:
    skipped = terminalreporter.stats.get("skipped", [])
    reasons: dict[str, Counter[str]] = {}
    for report in skipped:
        _, _, reason = report.longrepr
        where = report.nodeid.partition("::")[0]
        reasons.setdefault(reason.removeprefix("Skipped: "), Counter())[where] += 1
    terminalreporter.section("skipped", sep="-")
    for reason, files in reasons.items():
        terminalreporter.write_line(f"{files.total()}: {reason} ({', '.join(files)})")
    terminalreporter.write_line(f"{len(skipped)} in all." if skipped else "Nothing was skipped.")
    if not counts.proving():
        terminalreporter.write_line("Counts were reduced; `make prove` uses the full ones.")


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """The address of a real PostgreSQL server, one for the whole run."""
    # Nobody cuts the power: without fsync nothing is lost here, and the tests take a fraction of the time.
    with servers.running(fsync="off", max_connections="200") as server:
        yield server.url


@pytest.fixture(scope="session")
def synapse() -> Iterator[homeservers.Homeserver]:
    """A Matrix homeserver, one for the whole run: tests register people of their own."""
    with homeservers.running() as server:
        yield server


@pytest.fixture(scope="session")
def post_office() -> Iterator[mail.PostOffice]:
    """Servers of mail, for the whole run: tests make folders of their own."""
    with mail.running() as office:
        yield office


@pytest.fixture(scope="session")
def postgres_schemas(postgres_url: str) -> Iterator[Schemas]:
    schemas = Schemas(postgres_url)
    yield schemas
    schemas.close()


@pytest.fixture(scope="session")
def empty_database(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A SQLite store in which nothing was ever stored."""
    path = tmp_path_factory.mktemp("empty") / "state.db"

    async def create() -> None:
        async with await SessionStore.open(f"sqlite:///{path}"):
            pass

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(create())
    return path.read_bytes()


@pytest.fixture(params=["sqlite", "postgresql"])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The address of an empty store. Its tables are there: creating them takes longer than most tests do."""
    if request.param == "sqlite":
        path = tmp_path / "state.db"
        path.write_bytes(request.getfixturevalue("empty_database"))
        path.chmod(0o600)
        yield f"sqlite:///{path}"
    else:
        with request.getfixturevalue("postgres_schemas").lent() as url:
            yield f"{url}&pool={CONNECTIONS}"
