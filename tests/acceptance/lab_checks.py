"""What must hold after the laboratory has done its worst, found out from outside: by the database's own rows,
by what arrived, and by what the agents' beginnings and ends tell. Everything here is a pure function."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import msgspec

FINAL = {"done", "set_aside"}
MOST_ATTEMPTS = 3

QUERIES = {
    "turns": "SELECT number, id, state, session_key, event_id, attempts, put_backs FROM turns"
    " ORDER BY number",
    "deliveries": "SELECT id, state, kind, turn_id, body FROM deliveries ORDER BY number",
    "rows": "SELECT s.session_key, m.role, m.turn_id, m.body FROM messages m JOIN sessions s"
    " ON s.id = m.session_id WHERE m.hidden_by IS NULL"
    " ORDER BY MIN(m.seq) OVER (PARTITION BY m.session_id), m.position",
    "busy_lanes": "SELECT name FROM lanes WHERE holder IS NOT NULL OR due_at IS NOT NULL",
    "open_calls": "SELECT id FROM sessions WHERE open_calls IS NOT NULL",
}
UNFINISHED = (
    "SELECT (SELECT COUNT(*) FROM turns WHERE state IN ('queued', 'running', 'waiting')),"
    " (SELECT COUNT(*) FROM deliveries WHERE state IN ('pending', 'sending')),"
    " (SELECT COUNT(*) FROM lanes WHERE holder IS NOT NULL OR due_at IS NOT NULL)"
)
"""A node that is killed behind its last turn leaves a lane that others have to take from it."""


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """A message that the gateway said it has."""

    chat: str
    number: int
    event_id: str
    turn_id: str
    answer: str | None
    """None when it cannot be answered: it kills whoever tries."""

    @property
    def needs(self) -> int:
        """How many attempts: some fail the first time."""
        return 2 if (self.answer or "").startswith("tried") else 1


class Arrived(msgspec.Struct, frozen=True, kw_only=True):
    """Something that the receiver of callbacks took."""

    delivery_id: str
    chat: str
    event_id: str | None
    kind: str
    text: str
    final: bool


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """A time in which an agent worked on a turn."""

    key: str
    turn: str
    node: str
    begin: float
    end: float
    attempt: int = 1
    steps: tuple[float, ...] = ()
    """When it went on after it had said something."""


class Taking(msgspec.Struct, frozen=True, kw_only=True):
    """An attempt that was over: somebody took the turn, or had it already."""

    turn: str
    attempt: int
    at: float


class Turn(msgspec.Struct, frozen=True):
    number: int
    id: str
    state: str
    session_key: str
    event_id: str | None
    attempts: int
    put_backs: int


class Delivery(msgspec.Struct, frozen=True):
    id: str
    state: str
    kind: str
    turn_id: str | None
    final: bool


class Row(msgspec.Struct, frozen=True):
    session_key: str
    role: str
    turn_id: str | None
    message: dict[str, Any]


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """What the database holds."""

    turns: list[Turn]
    deliveries: list[Delivery]
    rows: list[Row]
    busy_lanes: list[str]
    open_calls: list[str]


def read_facts(found: dict[str, list[tuple[Any, ...]]]) -> Facts:
    """The answers to the queries, as records."""
    return Facts(
        turns=[Turn(*row) for row in found["turns"]],
        deliveries=[_delivery(row) for row in found["deliveries"]],
        rows=[_row(row) for row in found["rows"]],
        busy_lanes=[name for (name,) in found["busy_lanes"]],
        open_calls=[name for (name,) in found["open_calls"]],
    )


def _delivery(row: tuple[Any, ...]) -> Delivery:
    delivery_id, state, kind, turn_id, body = row
    return Delivery(delivery_id, state, kind, turn_id, msgspec.json.decode(body).get("final", True))


def _row(row: tuple[Any, ...]) -> Row:
    session_key, role, turn_id, body = row
    return Row(session_key, role, turn_id, msgspec.json.decode(body))


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    asked: list[Asked]
    arrived: list[Arrived]
    facts: Facts
    runs: list[Run]
    takings: list[Taking] = []
    idempotent: bool = True
    """Whether the receiver knows a callback again that comes twice."""


def violations(evidence: Evidence) -> list[str]:
    """Everything that must not be; nothing when all is well."""
    checks = (
        _turns, _answers, _doubles, _order, _transcripts, _calls, _overlaps, _stale, _leftovers,
    )  # fmt: skip
    return [each for check in checks for each in check(evidence)]


def blamed(evidence: Evidence) -> list[str]:
    """The turns of which more attempts count than they needed; none when only announced stops cut any off."""
    needed = {asked.event_id: asked.needs for asked in evidence.asked}
    return [
        f"{turn.attempts - turn.put_backs} of {turn.attempts} attempts at {turn.event_id} count"
        for turn in evidence.facts.turns
        if turn.attempts - turn.put_backs > needed.get(turn.event_id or "", 1)
    ]


def counts(evidence: Evidence) -> Counter[str]:
    """For people: how much happened."""
    told = Counter({"messages acknowledged": len(evidence.asked)})
    told["callbacks arrived"] = len(evidence.arrived)
    told["callbacks repeated"] = len(evidence.arrived) - len({each.delivery_id for each in evidence.arrived})
    told["agent runs"] = len(evidence.runs)
    told["turns run again"] = sum(turn.attempts > 1 for turn in evidence.facts.turns)
    told["attempts excused"] = sum(turn.put_backs for turn in evidence.facts.turns)
    told["turns set aside"] = sum(turn.state == "set_aside" for turn in evidence.facts.turns)
    told["sends of unknown outcome"] = sum(each.state == "unknown" for each in evidence.facts.deliveries)
    return +told


def _turns(evidence: Evidence) -> Iterator[str]:
    """Every acknowledged message is one turn, which has ended well, or was given up after its attempts."""
    by_event = _grouped((turn.event_id, turn) for turn in evidence.facts.turns)
    for asked in evidence.asked:
        turns = by_event.pop(asked.event_id, [])
        if [turn.id for turn in turns] != [asked.turn_id]:
            yield f"{asked.event_id} was acknowledged as {asked.turn_id} and is {turns}"
            continue
        (turn,) = turns
        if turn.state not in FINAL:
            yield f"{asked.event_id} is {turn.state}"
        tried = turn.attempts - turn.put_backs
        if turn.state == "set_aside" and tried != MOST_ATTEMPTS + 1:
            yield f"{asked.event_id} was set aside after {tried - 1} attempts"
        if turn.state == "done" and asked.answer is None:
            yield f"{asked.event_id} cannot have been answered"
    yield from (f"nobody asked {event_id}" for event_id in by_event)


def _answers(evidence: Evidence) -> Iterator[str]:
    """Every turn has one answer, the right one, and it arrived; or one notice that there is none."""
    by_turn = _grouped((each.turn_id, each) for each in evidence.facts.deliveries)
    arrived = _grouped((each.event_id, each) for each in evidence.arrived)
    states = {turn.id: turn.state for turn in evidence.facts.turns}
    for asked in evidence.asked:
        final = [each for each in by_turn.get(asked.turn_id, []) if each.final]
        wanted = "reply" if states.get(asked.turn_id) == "done" else "notice"
        if [each.kind for each in final] != [wanted]:
            yield f"{asked.event_id} has the answers {final}"
            continue
        yield from _arrival(evidence, asked, final[0], arrived.get(asked.event_id, []))


def _arrival(evidence: Evidence, asked: Asked, sent: Delivery, arrived: Sequence[Arrived]) -> Iterator[str]:
    ends = [each for each in arrived if each.final]
    may_miss = sent.state == "unknown" and not evidence.idempotent
    if not ends and not may_miss:
        yield f"{asked.event_id} was answered by {sent}, which never arrived"
    if sent.state != "sent" and not may_miss:
        yield f"the answer to {asked.event_id} is {sent.state}"
    if {each.delivery_id for each in ends} - {sent.id}:
        yield f"{asked.event_id} was answered {len(ends)} times: {ends}"
    if sent.kind == "reply" and any(each.text != asked.answer for each in ends):
        yield f"{asked.event_id} was answered with {ends}, not {asked.answer!r}"


def _doubles(evidence: Evidence) -> Iterator[str]:
    """What the receiver cannot know again comes once."""
    if not evidence.idempotent:
        times = Counter(each.delivery_id for each in evidence.arrived)
        yield from (f"{name} arrived {number} times" for name, number in times.items() if number > 1)
    known = {each.id for each in evidence.facts.deliveries}
    yield from (f"{each} is not in the store" for each in evidence.arrived if each.delivery_id not in known)


def _order(evidence: Evidence) -> Iterator[str]:
    """In every chat the answers come in the order of the messages."""
    numbers = {each.event_id: each.number for each in evidence.asked}
    first: dict[str, Arrived] = {}
    for each in evidence.arrived:
        if each.final and each.event_id in numbers:
            first.setdefault(each.delivery_id, each)
    for chat, answers in _grouped((each.chat, each) for each in first.values()).items():
        order = [numbers[each.event_id or ""] for each in answers]
        if order != sorted(order):
            yield f"the answers in {chat} came in the order {order}"


def _transcripts(evidence: Evidence) -> Iterator[str]:
    """Every message stands in its transcript once, in the order of acceptance, with one answer. What was set
    aside may never have come so far."""
    rows = _grouped((row.session_key, row) for row in evidence.facts.rows if row.turn_id)
    for key, turns in _grouped((turn.session_key, turn) for turn in evidence.facts.turns).items():
        said = [row.turn_id for row in rows.get(key, []) if row.role == "user"]
        wanted = [turn.id for turn in turns if turn.state != "set_aside" or turn.id in said]
        if said != wanted:
            yield f"the messages of {key} stand as {said}, not as {wanted}"
        answers = [row.turn_id for row in rows.get(key, []) if _is_answer(row)]
        if answers != [turn.id for turn in turns if turn.state == "done"]:
            yield f"the answers of {key} stand as {answers}"


def _is_answer(row: Row) -> bool:
    return row.role == "assistant" and not row.message.get("tool_calls")


def _calls(evidence: Evidence) -> Iterator[str]:
    """Every tool call has one result."""
    called = Counter(
        call["id"] for row in evidence.facts.rows for call in row.message.get("tool_calls") or ()
    )
    answered = Counter(row.message.get("tool_call_id") for row in evidence.facts.rows if row.role == "tool")
    if called != answered:
        yield f"tool calls and their results differ: {called - answered} and {answered - called}"


def _overlaps(evidence: Evidence) -> Iterator[str]:
    """Never two turns at once in a conversation."""
    for runs in _grouped((run.key, run) for run in evidence.runs).values():
        for before, after in pairwise(sorted(runs, key=lambda run: run.begin)):
            if after.begin < before.end:
                yield f"two at once: {before} and {after}"


def _stale(evidence: Evidence) -> Iterator[str]:
    """No agent is begun, or asked to go on, with a turn that somebody else has by then. The one step that it
    had been asked for when its process was stopped is taken when that wakes up."""
    over = over_since(evidence.takings)
    for run in evidence.runs:
        since = over.get((run.turn, run.attempt))
        if since is not None and run.begin > since:
            yield f"a stale start, {run.begin - since:.3f} s after it was over: {run}"
        elif since is not None and sum(step > since for step in run.steps) > 1:
            yield f"stale steps of {run}, which was over at {since}"


def stale_starts(evidence: Evidence) -> int:
    over = over_since(evidence.takings)
    return sum(run.begin > over.get((run.turn, run.attempt), run.begin) for run in evidence.runs)


def over_since(takings: Sequence[Taking]) -> dict[tuple[str, int], float]:
    """For each attempt at a turn since when it was over."""
    over: dict[tuple[str, int], float] = {}
    for each in takings:
        known = over.get((each.turn, each.attempt), each.at)
        over[each.turn, each.attempt] = min(known, each.at)
    return over


def _leftovers(evidence: Evidence) -> Iterator[str]:
    facts = evidence.facts
    yield from (f"the lane {name} is still held or due" for name in facts.busy_lanes)
    yield from (f"the session {name} has open tool calls" for name in facts.open_calls)
    waiting = [each for each in facts.deliveries if each.state in {"pending", "sending", "dead"}]
    yield from (f"{each} was never settled" for each in waiting)


def _grouped(pairs: Iterable[tuple[Any, Any]]) -> dict[Any, list[Any]]:
    groups = defaultdict(list)
    for key, value in pairs:
        groups[key].append(value)
    return groups
