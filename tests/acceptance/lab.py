"""The crash laboratory: gateways under load that are killed and started again, and everything that must hold
checked from outside.

    async with laboratory(folder, url, Plan(nodes=3)) as lab:
        await lab.load(until=lab.kill_nodes(10))
        evidence = await lab.settle()
"""

import asyncio
import contextlib
import itertools
import math
import random
import secrets
import signal
import subprocess
import time
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import apsw
import asyncpg
import msgspec

from frontdesk.formats import webhooks
from frontdesk.testing import crashes
from tests import counts, loopback
from tests.acceptance import forks, lab_checks, lab_main, program
from tests.acceptance.lab_checks import Asked, Evidence, Facts, Run, Taking
from tests.acceptance.lab_main import Note
from tests.acceptance.lab_receiver import Receiver
from tests.processes import Followed

ROOT = Path(__file__).parents[2]
PATIENCE_SECONDS = 90.0
CRASH_SECONDS = 3.0
LATEST_KILL_SECONDS = (0.0, 0.05, 0.5)
LATEST_STOP_SECONDS = 2.0
STOPPING_SECONDS = (2.0, 4.5)
"""Between the order to stop and the kill: docker waits for ten. A busy machine hears the order late."""
AGAIN_SECONDS = 0.05
REQUEST_SECONDS = 60.0
LOOK_SECONDS = 0.05
MOST_AHEAD = counts.count(4, 10)
LOG_LINES = 200
TIMES = 6
RARE = ("turns.recover", "turns.requeue", "turns.rotate")
AT_ANY_TIME, STOPPED = 0.2, 0.1
"""The shares of lives that are not told where to die, and that are asked to stop instead of being killed."""
ORDERS = [f"{when}:{step}" for step, when in itertools.product(crashes.STEPS, crashes.When)]
AWAKE_SECONDS, BEYOND_SECONDS = (0.5, 1.5), (0.3, 3.0)
"""Between two freezes, and how much longer than a lease they last: the others look every two seconds."""
ACKNOWLEDGED = (200, 202)
TRY_AGAIN = (500, 503)
STALE = 401
"""What was signed by a clock that is an hour off is refused."""
FAKETIME = sorted(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))
TURNS_HOURS = (-24.0, -1.0, -0.5, 0.0, 1.0, 24.0)
BETWEEN_TURNS_SECONDS, KILLED_AFTER_TURN = counts.count(3, 6) / 2, 0.3


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    nodes: int = 1
    chats: int = counts.count(6, 12)
    messages: int = 4
    """How many each chat sends at least."""
    pause_seconds: float = 0.1
    """The longest that a chat waits between two messages."""
    trouble: float = 0.1
    """The share of callbacks that the receiver does not meet well."""
    repeats: float = 0.2
    """The share of messages that are sent again although they were acknowledged."""
    idempotent: bool = True
    max_messages: int = 14
    """After so many rows a session is followed by a new one."""
    slow_seconds: float = 0.05
    """How long the slow answers take."""
    drain_seconds: float = 0.5
    """How long a node that is asked to stop lets turns go on."""
    lease_seconds: float = 30.0
    """After so long a node that stands still is taken over."""
    clocks: bool = False
    """The nodes' clocks can be turned. By such clocks what was just interrupted may be a day old: it goes on
    all the same."""
    program: bool = False
    """Start `frontdesk run` itself, which cannot be told where to die and tells nothing of its agent."""


class Frozen:
    """A time in which a process stood still."""

    def __init__(self, begin: float) -> None:
        self.begin = begin
        self.end = math.inf


class Life:
    """One process of a node, from its start to its death."""

    def __init__(self, name: str, process: Followed, crash: str) -> None:
        """``crash`` is where it is to die by itself, if anywhere."""
        self.name = name
        self.crash = crash
        self.process = process
        self.ready = asyncio.Event()
        self.notes: list[Note] = []
        self.killed_at: float | None = None
        self.frozen: list[Frozen] = []
        self.log: deque[str] = deque(maxlen=LOG_LINES)
        self._reading = [asyncio.create_task(self._read_notes()), asyncio.create_task(self._read_log())]

    async def _read_notes(self) -> None:
        async for line in self.process.stdout:
            with contextlib.suppress(msgspec.MsgspecError):  # the program itself may write anything
                self._note(msgspec.json.decode(line, type=Note))

    def _note(self, note: Note) -> None:
        self.notes.append(note)
        if note.what == "ready":
            self.ready.set()

    async def _read_log(self) -> None:
        async for line in self.process.stderr:
            self.log.append(line.decode(errors="replace").rstrip())

    def kill(self) -> None:
        self.killed_at = time.monotonic()
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()

    async def ended(self) -> int:
        """Its exit code, once everything that it wrote is read."""
        code = await self.process.wait()
        await asyncio.gather(*self._reading)
        self.process.close()
        self.ready.set()
        return code

    def runs(self) -> Iterator[Run]:
        """What its agent did. What a kill cut off ended with the kill; what ended the process, at once."""
        begun: dict[tuple[str, int], Note] = {}
        for note in self.notes:
            if note.what == "began":
                begun[note.turn, note.attempt] = note
            elif note.what == "ended":
                yield self._run(begun.pop((note.turn, note.attempt)), note.at)
        died = [note.at for note in self.notes if note.what == "died"]
        for note in begun.values():
            yield self._run(note, died[0] if died else self.killed_at or note.at)

    def _run(self, note: Note, end: float) -> Run:
        """While a process stands still its agent does nothing, and whatever it still does when it wakes up
        are steps, which are looked at one by one."""
        end = min([end, *(frozen.begin for frozen in self.frozen if frozen.begin > note.at)])
        steps = tuple(each.at for each in self.notes if each.what == "went on" and _is_of(each, note))
        return Run(
            key=note.key,
            turn=note.turn,
            attempt=note.attempt,
            node=self.name,
            begin=note.at,
            end=end,
            steps=steps,
        )

    def takings(self) -> Iterator[Taking]:
        """Which attempts were over, and since when: whoever has a turn has ended all attempts before."""
        for note in self.notes:
            if note.what == "taken":
                yield Taking(turn=note.turn, attempt=note.attempt, at=note.at)
            elif note.what == "claimed":
                for attempt in range(1, note.attempt):
                    yield Taking(turn=note.turn, attempt=attempt, at=note.at)

    def freeze(self) -> None:
        self.frozen.append(Frozen(begin=time.monotonic()))
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self.process.send_signal(signal.SIGCONT)
        self.frozen[-1].end = time.monotonic()

    def stood_still(self, since: float) -> bool:
        return any(frozen.end > since for frozen in self.frozen)


def _is_of(note: Note, begun: Note) -> bool:
    return (note.turn, note.attempt) == (begun.turn, begun.attempt)


class Node:
    """A gateway that is started again whenever it dies."""

    def __init__(self, name: str, folder: Path, environment: dict[str, str], plan: Plan) -> None:
        self.name = name
        self.port = loopback.free_port()
        self.lives: list[Life] = []
        self.deaths: Counter[int] = Counter()
        self.next_crash = ""
        self.ahead = timedelta(0)
        """How far its clock is ahead of ours."""
        self._folder = folder
        self._environment = environment
        self._program = plan.program
        self._stopping = False
        self._alive = asyncio.Event()

    @property
    def file(self) -> Path:
        return self._folder / "frontdesk.toml"

    async def live(self) -> None:
        while not self._stopping:
            crash, self.next_crash = self.next_crash, ""
            number = 1 if crash.endswith(RARE) else random.randint(1, TIMES)
            process = Followed(self._start(crash and f"{crash}:{number}"))
            await process.read()
            life = Life(f"{self.name}.{len(self.lives)}", process, crash)
            self.lives.append(life)
            self._alive.set()
            code = await life.ended()
            self._alive.clear()
            self.deaths[code] += 1

    def _start(self, crash: str) -> "subprocess.Popen[bytes]":
        pipe = subprocess.PIPE
        named: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": pipe, "stderr": pipe}
        named |= {"cwd": ROOT, "env": self._environment}
        if self._program:
            return subprocess.Popen([program.FRONTDESK, "--config", self.file, "run"], **named)
        return forks.popen_module(lab_main.__name__, str(self.file), crash, **named)

    async def life(self) -> Life:
        """The present life, once it is ready."""
        while True:
            await self._alive.wait()
            life = self.lives[-1]
            await (self._answers() if self._program else life.ready.wait())
            if life.process.returncode is None:
                return life
            await asyncio.sleep(AGAIN_SECONDS)

    async def _answers(self) -> None:
        while self._alive.is_set():
            with contextlib.suppress(OSError):
                _, writer = await asyncio.open_connection("127.0.0.1", self.port)
                writer.close()
                return
            await asyncio.sleep(AGAIN_SECONDS)

    def turn_clock(self, ahead: timedelta) -> None:
        self.ahead = ahead
        written = self.clock.with_suffix(".new")
        written.write_text(f"{ahead.total_seconds():+.0f}")
        written.replace(self.clock)

    @property
    def clock(self) -> Path:
        return self._folder / "clock"

    def stood_still(self, since: float) -> bool:
        """Whether it was frozen at a time after that."""
        return any(life.stood_still(since) for life in self.lives)

    async def stop(self) -> int | None:
        """Ask it to end; its exit code."""
        life = await self.life()
        self._stopping = True
        with contextlib.suppress(ProcessLookupError):
            life.process.send_signal(signal.SIGTERM)
        await asyncio.wait_for(life.ended(), PATIENCE_SECONDS)
        return life.process.returncode

    def end(self) -> None:
        self._stopping = True
        if self.lives:
            self.lives[-1].kill()


class Lab:
    def __init__(self, url: str, plan: Plan, nodes: list[Node], receiver: Receiver, secret: str) -> None:
        self.plan = plan
        self.nodes = nodes
        self.receiver = receiver
        self.asked: list[Asked] = []
        self.told: Counter[str] = Counter()
        self._asked: Counter[str] = Counter()
        self._url = url
        self._secret = secret

    # Load.

    async def load(self, until: Coroutine[Any, Any, None] | None = None) -> None:
        """Let the chats send their messages, and go on as long as something else lasts."""
        lasting = asyncio.create_task(until) if until else None
        async with asyncio.TaskGroup() as group:
            for number in range(self.plan.chats):
                group.create_task(self._chat(f"chat-{number}", lasting))
        if lasting:
            await lasting

    async def until(self, happened: Callable[[], object]) -> None:
        while not happened():  # noqa: ASYNC110 - what is waited for happens in other processes
            await asyncio.sleep(LOOK_SECONDS)

    async def _chat(self, chat: str, lasting: "asyncio.Task[None] | None") -> None:
        for number in itertools.count():
            if number >= self.plan.messages and (lasting is None or lasting.done()):
                return
            await self.ask(chat, number, *_question(chat, number, self.plan.slow_seconds))
            await self.until(lambda: self._ahead(chat) < MOST_AHEAD)
            await asyncio.sleep(random.uniform(0, self.plan.pause_seconds))

    def _ahead(self, chat: str) -> int:
        """How far a chat is ahead of the answers that it got."""
        return self._asked[chat] - self.receiver.answered[chat]

    async def ask(self, chat: str, number: int, text: str, answer: str | None) -> Asked:
        """Send a message until it is acknowledged, perhaps once more."""
        event_id = f"{chat}-{number}"
        body = {"id": event_id, "chat_id": chat, "user_id": chat, "text": text}
        turn_id = await self._insist(body)
        asked = Asked(chat=chat, number=number, event_id=event_id, turn_id=turn_id, answer=answer)
        self.asked.append(asked)
        self._asked[chat] = number
        if random.random() < self.plan.repeats:
            self.told["messages repeated"] += 1
            assert await self._insist(body) == turn_id
        return asked

    async def _insist(self, body: dict[str, str]) -> str:
        sent, begin = msgspec.json.encode(body), time.monotonic()
        while True:
            awake = [node for node in self.nodes if not node.stood_still(time.monotonic())]
            node = random.choice(awake)
            status, answer = await self._post(node, body["id"], sent)
            if node.stood_still(begin):
                begin = time.monotonic()  # nobody waits for one that stands still but those who had begun
            elif status in ACKNOWLEDGED:
                self._waited("an acknowledgement", begin)
            if status in ACKNOWLEDGED:
                turn_id: str = msgspec.json.decode(answer)["turn_id"]
                return turn_id
            expected = status is None or status in TRY_AGAIN or (self.plan.clocks and status == STALE)
            assert expected, (status, answer)
            self.told["requests unanswered" if status is None else "requests refused"] += 1
            await asyncio.sleep(AGAIN_SECONDS)

    async def _post(self, node: Node, event_id: str, body: bytes) -> tuple[int | None, bytes]:
        """Status and body of the answer; None when there was none."""
        now = datetime.now(UTC) + node.ahead
        headers = webhooks.signed_headers(self._secret, event_id, now, body)
        lines = [f"{name}: {value}" for name, value in headers.items()]
        head = ["POST /channels/webhook/lab HTTP/1.1", "host: 127.0.0.1", "connection: close"]
        request = "\r\n".join([*head, f"content-length: {len(body)}", *lines, "", ""]).encode() + body
        try:
            async with asyncio.timeout(REQUEST_SECONDS):
                answer = await _exchange(node.port, request)
        except (OSError, TimeoutError):
            return None, b""
        top, blank, rest = answer.partition(b"\r\n\r\n")
        return (int(top.split()[1]), rest) if blank and rest else (None, b"")

    # Kills.

    async def kill_nodes(self, kills: int, *, steps: bool = True, rest_seconds: float = 0.0) -> None:
        """Kill one node after the other: at every named step in turn and at any time; some just stop."""
        orders = itertools.cycle(random.sample(ORDERS, k=len(ORDERS)))
        while self.told["kills"] < kills:
            node = random.choice(self.nodes)
            if steps and random.random() > AT_ANY_TIME:
                node.next_crash = next(orders)
            life = await node.life()
            if random.random() < STOPPED:
                await self._stop(life)
            else:
                await self._kill(life)
            await asyncio.sleep(rest_seconds)

    async def _kill(self, life: Life) -> None:
        """Let a life end as it was ordered to; others, and those that do not come to that, are killed."""
        how = life.crash or "at any time"
        try:
            # Without an order this is no wait for something, but the moment of the kill.
            seconds = CRASH_SECONDS if life.crash else random.uniform(0, random.choice(LATEST_KILL_SECONDS))
            async with asyncio.timeout(seconds):
                await life.process.wait()
        except TimeoutError:
            how = "that came to no step" if life.crash else how
            life.kill()
        await life.ended()
        self.told.update(["kills", f"kills {how}"])

    async def _stop(self, life: Life) -> None:
        """Ask a node to stop in the middle of its work."""
        with contextlib.suppress(ProcessLookupError):
            life.process.send_signal(signal.SIGTERM)
        code = await asyncio.wait_for(life.ended(), PATIENCE_SECONDS)
        assert code in (0, -signal.SIGKILL), (code, self.log())
        self.told["stops"] += 1

    async def kill_stopping_nodes(self, kills: int) -> None:
        """Ask one node after the other to stop in the middle of its work, and kill it while it does."""
        while self.told["kills after SIGTERM"] < kills:
            life = await random.choice(self.nodes).life()
            await asyncio.sleep(random.uniform(0, LATEST_STOP_SECONDS))
            with contextlib.suppress(ProcessLookupError):
                life.process.send_signal(signal.SIGTERM)
            await asyncio.sleep(random.uniform(*STOPPING_SECONDS))
            stopped = life.process.returncode is not None
            life.kill()
            await life.ended()
            self.told["stops" if stopped else "kills after SIGTERM"] += 1

    # Clocks.

    async def turn_clocks(self, turns: int) -> None:
        """Turn the clocks of nodes, each for itself, forth and back; some nodes are killed after it."""
        while self.told["clocks turned"] < turns:
            node = random.choice(self.nodes)
            life = await node.life()
            ahead = timedelta(hours=random.choice(TURNS_HOURS))
            back = ahead < node.ahead
            node.turn_clock(ahead)
            self.told.update(["clocks turned", "clocks set back"] if back else ["clocks turned"])
            if random.random() < KILLED_AFTER_TURN:
                await self._kill(life)
            await asyncio.sleep(BETWEEN_TURNS_SECONDS)

    # Nodes that stand still.

    async def freeze_nodes(self, freezes: int) -> None:
        """Freeze one node after the other beyond its lease; meanwhile people write to those that live."""
        self.told["freezes"] = 0
        for number in range(freezes):
            life = await random.choice(self.nodes).life()
            await asyncio.sleep(random.uniform(*AWAKE_SECONDS))
            await self._ask_anew(f"awake-{number}")
            life.freeze()
            probing = asyncio.create_task(self._probe(number, life))
            try:
                await asyncio.sleep(self.plan.lease_seconds + random.uniform(*BEYOND_SECONDS))
            finally:
                life.thaw()
            await probing
            self.told["freezes"] += 1

    async def _probe(self, number: int, life: Life) -> None:
        """New chats, as long as the node stands still: it cannot have them."""
        for probe in itertools.count():
            if not life.stood_still(time.monotonic()):
                return
            await self._ask_anew(f"probe-{number}-{probe}")

    async def _ask_anew(self, chat: str) -> None:
        """A message in a new chat, and its answer."""
        begin = time.monotonic()
        await self.ask(chat, 1, f"message of {chat}", f"echo: message of {chat}")
        await self.until(partial(self.receiver.answered.get, chat))
        self._waited("an answer in a new chat", begin)

    def _waited(self, what: str, begin: float) -> None:
        """For people: the longest that those who are served by nodes that are awake had to wait, and how long
        they have to on this machine when all nodes are."""
        frozen = any(node.stood_still(begin) for node in self.nodes)
        word = f"ms longest wait for {what} while {'a node stood still' if frozen else 'all were awake'}"
        self.told[word] = max(self.told[word], round((time.monotonic() - begin) * 1000))

    # The end.

    async def settle(self) -> Evidence:
        """Wait until everything is done, stop the nodes, and look at what there is."""
        self.receiver.trouble = 0
        await self._quiet()
        codes = await asyncio.gather(*(node.stop() for node in self.nodes))
        assert set(codes) == {0}, (codes, self.log())
        lives = [life for node in self.nodes for life in node.lives]
        evidence = Evidence(
            asked=self.asked,
            arrived=self.receiver.arrived,
            facts=await read_facts(self._url),
            runs=[run for life in lives for run in life.runs()],
            takings=[taking for life in lives for taking in life.takings()],
            idempotent=self.plan.idempotent,
        )
        self.told.update(lab_checks.counts(evidence))
        self.told["stale agent starts"] = lab_checks.stale_starts(evidence)
        return evidence

    async def _quiet(self) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        before: tuple[int, int, int] | None = None
        while any(left := await unfinished(self._url)):
            if left != before:
                before, deadline = left, time.monotonic() + PATIENCE_SECONDS
            if time.monotonic() > deadline:
                raise AssertionError(
                    f"{left} turns, deliveries and lanes do not come to an end:\n{self.log()}"
                )
            await asyncio.sleep(LOOK_SECONDS)

    def log(self) -> str:
        """What the nodes complained about lately."""
        return "\n".join(line for node in self.nodes for life in node.lives[-2:] for line in life.log)


@asynccontextmanager
async def laboratory(folder: Path, url: str, plan: Plan) -> AsyncIterator[Lab]:
    """Nodes that live, and a receiver of what they send; none outlives the block."""
    secret = secrets.token_hex()
    receiver = Receiver(secret, plan.trouble)
    async with receiver.listening() as callback_url:
        nodes = [
            _node(f"node{number}", folder, url, plan, callback_url, secret) for number in range(plan.nodes)
        ]
        lives = [asyncio.create_task(node.live()) for node in nodes]
        try:
            yield Lab(url, plan, nodes, receiver, secret)
        finally:
            for node in nodes:
                node.end()
            await asyncio.wait(lives, timeout=PATIENCE_SECONDS)


def _node(name: str, folder: Path, url: str, plan: Plan, callback_url: str, secret: str) -> Node:
    home = folder / name
    home.mkdir()
    environment = program.environment(home, LAB_SECRET=secret)
    node = Node(name, home, environment, plan)
    if plan.clocks:
        node.turn_clock(timedelta(0))
        environment |= {
            "LD_PRELOAD": str(FAKETIME[0]),
            "FAKETIME_TIMESTAMP_FILE": str(node.clock),
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "FAKETIME_CACHE_DURATION": "1",
        }
    node.file.write_text(
        f"""
home = "{home}"
auto_continue_freshness_seconds = {0 if plan.clocks else 3600}
[store]
url = "{url}"
[server]
port = {node.port}
[agent]
driver = "scripted"
[gateway]
busy_notice = false
drain_seconds = {plan.drain_seconds}
lease_seconds = {plan.lease_seconds}
[session_reset]
mode = "none"
max_messages = {plan.max_messages}
[channels.webhook.lab]
secret_env = "LAB_SECRET"
callback_url = "{callback_url}"
idempotent = {str(plan.idempotent).lower()}
"""
    )
    return node


def _question(chat: str, number: int, slow_seconds: float) -> tuple[str, str]:
    """What a chat says, and the answer to that: plainly, slowly, with a tool, with usage, after a failure."""
    words = f"{number} of {chat}"
    if number % 16 == 15:
        return f"!fail retryable 1; !say tried {words}", f"tried {words}"
    return (
        (f"message {words}", f"echo: message {words}"),
        (f'!tool look {{"n": {number}}}; !say looked {words}', f"looked {words}"),
        (f"!sleep {slow_seconds}; !say slept {words}", f"slept {words}"),
        (f"!tokens 10 5; !say counted {words}", f"counted {words}"),
    )[number % 4]


async def _exchange(port: int, request: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(request)
        return await reader.read(-1)
    finally:
        writer.transport.abort()


# The database, by our own SQL.


async def fetch(url: str, query: str) -> list[tuple[Any, ...]]:
    if url.startswith("sqlite:"):
        return _fetch_sqlite(url.removeprefix("sqlite:///").partition("?")[0], query)
    address, _, schema = url.partition("?schema=")
    link = await asyncpg.connect(address, server_settings={"search_path": schema})
    try:
        return [tuple(record) for record in await link.fetch(query)]
    finally:
        await link.close()


def _fetch_sqlite(path: str, query: str) -> list[tuple[Any, ...]]:
    db = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READONLY)
    try:
        db.set_busy_timeout(5_000)
        return list(db.execute(query))
    finally:
        db.close()


async def read_facts(url: str) -> Facts:
    return lab_checks.read_facts(
        {name: await fetch(url, query) for name, query in lab_checks.QUERIES.items()}
    )


async def unfinished(url: str) -> tuple[int, int, int]:
    """How many turns and deliveries are not at their end, and how many lanes are held or due."""
    ((turns, deliveries, lanes),) = await fetch(url, lab_checks.UNFINISHED)
    return turns, deliveries, lanes
