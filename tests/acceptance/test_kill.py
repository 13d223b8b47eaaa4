"""Whatever is killed whenever: what was acknowledged is there, once, in order."""

import contextlib
import random
import signal
import subprocess
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from frontdesk import Session, SessionStore, Viewer
from frontdesk.testing import postgres
from tests import counts, servers
from tests.acceptance import forks, victim
from tests.acceptance.victim import Failed, Message, Opening, Orders, Said, Step

CHATS = 16
ROOT = Path(__file__).parents[2]
EVERYTHING = Viewer(frozenset(), administrator=True)
ANY_NUMBER = 1_000_000
LAST_TURNS = 2
MOST_ACKNOWLEDGEMENTS = 250
LATEST_SECONDS = (0, 0.03, 0.3)
OPENING = 1
END_SECONDS = 60

pytestmark = pytest.mark.prove


class Ledger:
    """What the parent was told: how far each chat has come."""

    def __init__(self) -> None:
        self.progress = dict.fromkeys(range(CHATS), (0, Step.ASK))
        self.told: Counter[str] = Counter()

    def note(self, line: bytes) -> None:
        match msgspec.json.decode(line, type=Opening | Said | Failed):
            case Said(chat, turn, step):
                assert self.progress[chat] == (turn, step)
                self.progress[chat] = victim.following(chat, turn, step)
                self.told["acknowledged"] += 1
            case Failed():
                self.told["refused and tried again"] += 1
            case Opening():
                self.told["opened"] += 1

    @property
    def furthest(self) -> int:
        return max(turn for turn, _ in self.progress.values())


class Client:
    """A running victim that talks for some of the chats."""

    def __init__(self, url: str, ledger: Ledger, chats: range, until: int | None = None) -> None:
        self._ledger = ledger
        progress = {chat: ledger.progress[chat] for chat in chats}
        orders = msgspec.json.encode(Orders(url=url, progress=progress, until=until))
        pipe = subprocess.PIPE
        self._process = forks.popen_module(
            victim.__name__, orders.decode(), cwd=ROOT, env=forks.ENVIRONMENT, stdout=pipe, stderr=pipe
        )

    def listen(self, lines: int) -> None:
        """Hear so many more; the client must live as long."""
        assert self._process.stdout
        for _ in range(lines):
            line = self._process.stdout.readline()
            if not line:
                self._end(returncode=None)
            self._ledger.note(line)

    def kill(self, within_seconds: float) -> None:
        # Not a wait for something: the moment of the kill.
        time.sleep(random.uniform(0, within_seconds))
        self._process.kill()
        self._end(returncode=-signal.SIGKILL)

    def finish(self) -> None:
        """Let the client come to its own end."""
        self._end(returncode=0)

    def _end(self, returncode: int | None) -> None:
        """Hear what was still on the way, and how the client ended."""
        with self._process, contextlib.ExitStack() as stack:
            stack.callback(self._process.kill)
            assert self._process.stdout
            assert self._process.stderr
            for line in self._process.stdout:
                if line.endswith(b"\n"):
                    self._ledger.note(line)
            complaints = self._process.stderr.read().decode()
            assert not complaints, complaints
            assert self._process.wait(END_SECONDS) == returncode


def start_clients(url: str, ledger: Ledger, processes: int) -> list[Client]:
    """Clients that share the chats."""
    share = CHATS // processes
    return [Client(url, ledger, range(first, first + share)) for first in range(0, CHATS, share)]


async def stored(url: str) -> dict[str, list[tuple[Session, list[Message]]]]:
    """Every session with its transcript, by key, the oldest first; each key's current one is its last."""
    async with await SessionStore.open(url) as service:
        found = await service.list_own_sessions(EVERYTHING, limit=ANY_NUMBER)
        current = await service.list_sessions()
        by_key: dict[str, list[tuple[Session, list[Message]]]] = {}
        for session in sorted(found, key=lambda session: session.entry.created_at):
            transcript = await service.load_transcript(session.id)
            by_key.setdefault(session.entry.session_key, []).append((session, transcript))
        keys = {chat: await service.session_key_for(victim.source(chat)) for chat in range(CHATS)}
    assert sorted(entry.session_key for entry in current) == sorted(by_key)
    assert {entry.session_id for entry in current} == {each[-1][0].id for each in by_key.values()}
    assert all(session.end_reason for each in by_key.values() for session, _ in each[:-1])
    assert set(by_key) <= set(keys.values())
    return {str(chat): by_key.get(key, []) for chat, key in keys.items()}


def expected(chat: int, turn: int, step: Step) -> list[Message]:
    """What a chat has said when this is its next step."""
    rows: list[Message] = []
    for past in range(turn):
        rows += [victim.question(chat, past), *victim.answer(chat, past)]
    if step is not Step.ASK:
        rows.append(victim.question(chat, turn))
    if step is Step.RESET:
        rows += victim.answer(chat, turn)
    return rows


def check_counters(chat: int, session: Session, transcript: list[Message]) -> None:
    asked = [int(row["content"].split()[1]) for row in transcript if row["role"] == "user"]
    answers = [row["content"] for row in transcript if row["role"] == "assistant" and row["content"]]
    used = [victim.used(chat, int(content.split()[1])) for content in answers]
    entry = session.entry
    assert entry.message_count == len(transcript)
    assert entry.input_tokens == sum(usage.input_tokens for usage in used)
    assert entry.output_tokens == sum(usage.output_tokens for usage in used)
    assert entry.last_prompt_tokens == (used[-1].last_prompt_tokens if used else 0)
    assert asked == sorted(set(asked))


async def check(url: str, ledger: Ledger) -> None:
    """The store holds what was acknowledged, and beyond it at most each chat's next step."""
    for name, sessions in (await stored(url)).items():
        chat = int(name)
        turn, step = ledger.progress[chat]
        rows = [row for _, transcript in sessions for row in transcript]
        told = expected(chat, turn, step)
        ahead = expected(chat, *victim.following(chat, turn, step))
        assert rows in (told, ahead)
        for session, transcript in sessions:
            check_counters(chat, session, transcript)


async def check_end(url: str, ledger: Ledger) -> None:
    """A last life says the rest; then all is there, and nothing else."""
    until = ledger.furthest + LAST_TURNS
    Client(url, ledger, range(CHATS), until).finish()
    assert set(ledger.progress.values()) == {(until, Step.ASK)}
    for name, sessions in (await stored(url)).items():
        rows = [row for _, transcript in sessions for row in transcript]
        assert rows == expected(int(name), until, Step.ASK)
    await check(url, ledger)


def report(tell: counts.Tell, what: str, told: Counter[str]) -> None:
    for word, number in told.items():
        tell(f"{what}: {word}", number)


async def kill_clients(url: str, kills: int) -> Ledger:
    ledger = Ledger()
    for _ in range(kills):
        client = Client(url, ledger, range(CHATS))
        client.listen(random.choice([OPENING, OPENING + random.randrange(MOST_ACKNOWLEDGEMENTS)]))
        client.kill(within_seconds=random.choice(LATEST_SECONDS))
        ledger.told["clients killed"] += 1
    await check(url, ledger)
    await check_end(url, ledger)
    return ledger


async def test_acknowledged_messages_survive_killed_sqlite_clients(tmp_path: Path, tell: counts.Tell) -> None:
    ledger = await kill_clients(f"sqlite:///{tmp_path}/state.db", counts.count(6, 200))
    report(tell, "SQLite", ledger.told)


@pytest.fixture(scope="module")
def server() -> Iterator[postgres.Server]:
    """A server of these tests' own, which writes to the disk what it commits."""
    with servers.running(fsync="on") as server:
        yield server


@pytest.fixture
def schema_url(server: postgres.Server) -> str:
    return f"{server.url}?schema=t{uuid.uuid4().hex}"


async def test_acknowledged_messages_survive_killed_postgres_clients(
    schema_url: str, tell: counts.Tell
) -> None:
    ledger = await kill_clients(schema_url, counts.count(6, 200))
    report(tell, "PostgreSQL", ledger.told)


async def kill_server(url: str, server: postgres.Server, kills: int, *, clients_too: bool) -> Ledger:
    ledger = Ledger()
    while ledger.told["servers killed"] < kills:
        running = start_clients(url, ledger, processes=2)
        for _ in range(random.randint(1, 3) if clients_too else kills):
            for client in running:
                client.listen(OPENING + random.randrange(MOST_ACKNOWLEDGEMENTS))
            server.kill()
            server.start()
            ledger.told["servers killed"] += 1
        for client in running:
            client.listen(random.choice([0, CHATS]))
            client.kill(within_seconds=random.choice(LATEST_SECONDS))
            ledger.told["clients killed"] += 1
    await check(url, ledger)
    await check_end(url, ledger)
    return ledger


@pytest.mark.parametrize("clients_too", [False, True], ids=["clients live on", "clients die too"])
async def test_acknowledged_messages_survive_a_killed_server(
    server: postgres.Server, schema_url: str, tell: counts.Tell, clients_too: bool
) -> None:
    ledger = await kill_server(schema_url, server, counts.count(2, 50), clients_too=clients_too)
    report(tell, "PostgreSQL", ledger.told)
