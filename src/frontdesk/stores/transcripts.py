"""Transcripts: rows are added, hidden and shown again, never changed."""

from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any, cast

import msgspec
from msgspec.structs import replace

from frontdesk.contracts.bells import Topic
from frontdesk.contracts.store import COLUMN, Brief, Row, Work
from frontdesk.logs import get_logger
from frontdesk.model.feed import FeedKind
from frontdesk.model.keys import encode_part
from frontdesk.model.messages import Message, Plain, Role, open_calls, pack, text_of
from frontdesk.model.sessions import USAGE_COUNTERS, Session, SessionEntry, Usage
from frontdesk.model.transcripts import NewestRows, Revision, RevisionKind, Rewound
from frontdesk.stores import appending, loading
from frontdesk.stores.columns import (
    MICROS_A_MINUTE,
    from_micros,
    read_bodies,
    read_body,
    to_micros,
    to_minute,
    write_calls,
)
from frontdesk.stores.feed import announce
from frontdesk.stores.loading import every_row
from frontdesk.stores.origins import with_sources
from frontdesk.stores.work import EVER, Noun, glances, reads, value, writes

TAIL_ROWS = 64
KINDS = frozenset(map(str, RevisionKind))
NOTHING_USED = msgspec.structs.asdict(Usage())

Start = Callable[[], Work[int]]
TimedMessage = tuple[dict[str, Any], datetime]

log = get_logger(__name__)


class Transcripts(Noun):
    def append(
        self, session_id: str, messages: Sequence[Message], now: datetime, usage: Usage | None = None
    ) -> Coroutine[Any, Any, int]:
        """Store messages, and what the turn used; how many were new."""
        start: Start = partial(_append_alone, session_id, messages, now, usage)
        if len(messages) == 1:
            values = append_values(session_id, messages[0], now, usage, tells=1)
            change = partial(_said, messages[0], now.astimezone(UTC), usage)
            start = Brief(("append_message", values), 1, Topic.FEED, session_id, change, start)
        return self._engine.write(start, supersedes=session_id if messages else None)

    async def load(
        self, session_id: str, *, ancestors: bool = False, revision: int | None = None
    ) -> list[dict[str, Any]]:
        limit = 0 if ancestors or revision is not None else self._engine.glanced_rows
        bodies = await self._glance(session_id, limit) if limit else None
        if bodies is None:
            bodies = await self._load(session_id, ancestors, revision)
        return _readable(await _decoded(bodies, session_id))

    async def load_newest(self, session_id: str) -> NewestRows:
        """As much of the transcript's end as an agent is given, from the beginning of a turn on."""
        limit = self._engine.glanced_rows
        found = await self._glance(session_id, limit) if limit else None
        if found is not None and sum(map(len, found)) <= loading.GIVEN_BYTES:
            bodies, is_whole = found, True
        else:
            bodies, is_whole = await self._engine.read(partial(loading.newest_bodies, session_id))
        return NewestRows(messages=_readable(await _decoded(bodies, session_id)), is_whole=is_whole)

    @glances
    def _glance(self, session_id: str, limit: int) -> Work[list[bytes] | None]:
        """The transcript, unless it has more rows than that."""
        values = {"session_id": session_id, "limit": limit + 1, COLUMN: True}
        found: list[Any] = yield "first_live_bodies", values
        return found if len(found) <= limit else None

    @reads
    def _load(self, session_id: str, ancestors: bool, revision: int | None) -> Work[list[bytes]]:
        if revision is not None:
            hidden = yield from every_row("hidden_bodies", session_id=session_id, revision=revision)
            return [body for _, body in hidden]
        return [body for _, body, _ in (yield from _live_rows(session_id, ancestors))]

    async def load_until(self, session_id: str, turn_id: str) -> list[dict[str, Any]]:
        """The messages up to the last one of a turn; none where that one has none."""
        until = partial(every_row, "live_bodies_until", session_id=session_id, turn_id=turn_id)
        found = await self._engine.read(until)
        return _readable(await _decoded([body for _, body in found], session_id))

    async def load_timed(self, session_id: str, *, ancestors: bool = False) -> list[TimedMessage]:
        """The messages, each with when it was stored."""
        return await _timed(await self._engine.read(partial(_live_rows, session_id, ancestors)), session_id)

    async def load_newest_timed(self, session_id: str) -> tuple[list[TimedMessage], bool]:
        """As many of the newest messages as are held at once, each with when it was stored; whether that is
        all of them."""
        found, is_whole = await self._engine.read(partial(loading.newest_rows, session_id))
        return await _timed(found, session_id), is_whole

    async def timed_parts(
        self, session_id: str, *, ancestors: bool = False
    ) -> AsyncGenerator[list[TimedMessage], None]:
        """The messages as they are by then, each with when it was stored, some at a time."""
        lineage = await self._engine.read(partial(_lineage, session_id)) if ancestors else [session_id]
        for each in lineage:
            after = -1
            while found := await self._engine.read(partial(loading.some_rows, each, after)):
                yield await _timed(found, each)
                after = found[-1][0]

    @reads
    def count(self, session_id: str) -> Work[int]:
        """How many messages there are, whether they count against the limit or not."""
        return value("count_live", session_id=session_id, counted_from=0)

    @reads
    def has_platform_message_id(self, session_id: str, platform_message_id: str) -> Work[bool]:
        values = {"session_id": session_id, "platform_message_id": encode_part(platform_message_id)}
        return bool((yield "has_any_platform_id", values))

    @writes
    def rewrite(self, session_id: str, messages: Sequence[Message], now: datetime) -> Work[bool]:
        head = yield from appending.head_of(session_id)
        if head is None:
            return False
        revision = head.revision + 1
        kept = yield from with_sources(session_id, messages)
        yield "hide_from", {"session_id": session_id, "position": 0, "revision": revision}
        yield from _remember(session_id, revision, RevisionKind.REWRITE, now)
        fresh = yield from appending.fresh_among(session_id, head.session_key, kept)
        added, calls = appending.with_closings(fresh, ())
        yield from appending.insert(session_id, head, added, now)
        next_position = head.next_position + len(added)
        revised = msgspec.structs.replace(head, next_position=next_position, revision=revision, redo_depth=0)
        yield from _revise(session_id, revised, calls, now)
        yield from _tell(session_id, now)
        return True

    @writes
    def rewind(self, session_id: str, turns: int, now: datetime) -> Work[Rewound | None]:
        head = yield from appending.head_of(session_id)
        users = (yield from _last_users(session_id, max(1, turns))) if head else []
        if head is None or not users:
            return None
        position, body = users[-1]
        revision = head.revision + 1
        hidden = yield "hide_from", {"session_id": session_id, "position": position, "revision": revision}
        yield from _remember(session_id, revision, RevisionKind.REWIND, now)
        revised = msgspec.structs.replace(head, revision=revision, redo_depth=head.redo_depth + 1)
        yield from _revise(session_id, revised, (), now)
        yield from _tell(session_id, now)
        return Rewound(
            rewound_count=len(hidden), turns_undone=len(users), target_text=text_of(read_body(body) or {})
        )

    @writes
    def redo(self, session_id: str, now: datetime) -> Work[Rewound | None]:
        head = yield from appending.head_of(session_id)
        if head is None or head.redo_depth == 0:
            return None
        shown = yield "unhide", {"session_id": session_id, "revision": head.revision}
        yield "delete_revision", {"session_id": session_id, "revision": head.revision}
        shown = sorted(shown)
        revised = msgspec.structs.replace(head, revision=head.revision - 1, redo_depth=head.redo_depth - 1)
        yield from _revise(session_id, revised, _calls_after(shown), now)
        yield from _tell(session_id, now)
        users = [body for _, role, body in shown if _is_user_turn(role, body)]
        text = text_of(read_body(users[0]) or {}) if users else ""
        return Rewound(rewound_count=len(shown), turns_undone=len(users), target_text=text)

    @writes
    def close_calls(self, session_id: str, now: datetime) -> Work[int]:
        """Nobody will answer the tool calls that are open; how many there were."""
        closed = yield from appending.close_calls(session_id, now)
        if closed:
            yield from _tell(session_id, now)
        return closed

    @reads
    def revisions(self, session_id: str) -> Work[list[Revision]]:
        found = yield "revisions", {"session_id": session_id}
        return [
            Revision(number=number, kind=RevisionKind(kind), created_at=from_micros(created_at), rows=count)
            for number, kind, created_at, count in found
            if kind in KINDS
        ]


async def _decoded(bodies: list[bytes], session_id: str) -> list[Plain | None]:
    if len(bodies) <= loading.SLICE_ROWS and sum(map(len, bodies)) <= loading.SLICE_BYTES:
        return read_bodies(bodies, session=session_id)
    return await loading.decode(bodies, session=session_id)


def _readable(found: list[Plain | None]) -> list[Plain]:
    """Without those that could not be read; nearly always all."""
    return cast("list[Plain]", found) if all(found) else list(filter(None, found))


def _append_alone(
    session_id: str, messages: Sequence[Message], now: datetime, usage: Usage | None
) -> Work[int]:
    added = yield from appending.append_any(session_id, messages, now, usage)
    if added or usage:
        yield from _tell(session_id, now)
    return added


def append(
    session_id: str,
    messages: Sequence[Message],
    now: datetime,
    usage: Usage | None = None,
    *,
    ends: bool = False,
    is_first_attempt: bool = False,
) -> Work[int]:
    """Add the messages that are new; tool calls which can no longer be answered are closed before them, at
    the end of a turn all that are open. Rows of a turn's first attempt cannot be there already."""
    usual = len(messages) == 1 and not (ends and messages[0].calls)
    if usual and (yield "append_message", append_values(session_id, messages[0], now, usage)):
        return 1
    return (yield from appending.append_any(session_id, messages, now, usage, ends, is_first_attempt))


def append_values(
    session_id: str, message: Message, now: datetime, usage: Usage | None = None, *, tells: int = 0
) -> dict[str, Any]:
    """What `append_message` takes: one message, told in the feed or by whoever appends it. It gives no row
    where the message is known, or the session has open tool calls."""
    at, role, platform_id = to_micros(now), message.role, message.platform_message_id
    values = {
        "session_id": session_id,
        "now": at,
        "active_minute": at // MICROS_A_MINUTE,
        "tells": tells,
        "role": str(role),
        "counted": int(message.counts),
        "model_turns": int(role is Role.ASSISTANT),
        "open_calls": write_calls(message.calls) if message.calls else None,
        "platform_message_id": None if platform_id is None else encode_part(platform_id),
        "source_key": message.source_key,
        "turn_id": message.turn_id,
        "turn_position": message.turn_position,
        "body": message.body,
        "found_by": None,
    }
    values.update(NOTHING_USED if usage is None else msgspec.structs.asdict(usage))
    return values


def _said(message: Message, at: datetime, usage: Usage | None, session: Session) -> Session:
    """What the session is once `append_message` has stored the message."""
    entry = session.entry
    count = entry.message_count + message.counts
    used = _used(entry, usage) if usage else {}
    changed = replace(entry, updated_at=at, message_count=count, **used)
    is_model_turn = message.role is Role.ASSISTANT
    return replace(session, entry=changed, model_turns=session.model_turns + is_model_turn)


def _used(entry: SessionEntry, usage: Usage) -> dict[str, Any]:
    latest = {"cost_status": usage.cost_status, "last_prompt_tokens": usage.last_prompt_tokens}
    return {
        **{name: getattr(entry, name) + getattr(usage, name) for name in USAGE_COUNTERS},
        "estimated_cost_usd": entry.estimated_cost_usd + usage.cost_usd,
        **{name: value for name, value in latest.items() if value is not None},
    }


def _tell(session_id: str, now: datetime) -> Work[None]:
    """The session has other rows, by what is no turn's own."""
    yield from announce(FeedKind.TRANSCRIPT, now, session_id=session_id)


async def _timed(found: Sequence[Row], session_id: str) -> list[TimedMessage]:
    bodies = await _decoded([body for _, body, _ in found], session_id)
    times = (from_micros(at) for _, _, at in found)
    return [(body, at) for body, at in zip(bodies, times, strict=True) if body is not None]


def _live_rows(session_id: str, ancestors: bool) -> Work[list[Row]]:
    """Positions, bodies, and when each was stored."""
    found: list[Row] = []
    for each in (yield from _lineage(session_id)) if ancestors else [session_id]:
        found += yield from every_row("live_rows", session_id=each)
    return found


def _lineage(session_id: str) -> Work[list[str]]:
    """The sessions that were compressed into this one, the oldest first, and itself."""
    chain = [session_id]
    while True:
        parent = yield from value("compressed_parent", session_id=chain[-1])
        if parent is None or parent in chain:
            return chain[::-1]
        chain.append(parent)


def _last_users(session_id: str, turns: int) -> Work[list[tuple[int, bytes]]]:
    """Position and body of the newest user turns, newest first, no more than asked for."""
    users: list[tuple[int, bytes]] = []
    before = EVER
    while len(users) < turns:
        tail = yield "live_tail", {"session_id": session_id, "before": before, "limit": TAIL_ROWS}
        users.extend((position, body) for position, role, body in tail if _is_user_turn(role, body))
        if len(tail) < TAIL_ROWS:
            break
        before = tail[-1][0]
    return users[:turns]


def _is_user_turn(role: str, body: bytes) -> bool:
    return role == Role.USER and (read_body(body) or {}).get("observed") is not True


def _calls_after(shown: list[Row]) -> tuple[str, ...]:
    calls: tuple[str, ...] = ()
    for message in read_bodies([body for _, _, body in shown]):
        calls = open_calls(calls, pack(message)) if message else calls
    return calls


def _remember(session_id: str, revision: int, kind: RevisionKind, now: datetime) -> Work[None]:
    values = {"session_id": session_id, "revision": revision, "kind": str(kind), "now": to_micros(now)}
    yield "insert_revision", values


def _revise(session_id: str, head: appending.Head, calls: tuple[str, ...], now: datetime) -> Work[None]:
    count = yield from value("count_live", session_id=session_id, counted_from=head.counted_from)
    values = {"session_id": session_id, "message_count": count, "open_calls": write_calls(calls)}
    times = {"now": to_micros(now), "active_minute": to_minute(now)}
    yield "revise_transcript", {**msgspec.structs.asdict(head), **values, **times}


def begin(parent_id: str, session_id: str, messages: Sequence[Message], now: datetime) -> Work[None]:
    """Give a continuation its first rows, made from those of its parent."""
    kept = yield from with_sources(parent_id, messages)
    yield from append(session_id, kept, now)


def copy(parent_id: str, session_id: str, now: datetime) -> Work[None]:
    """Give a branch the live rows of its parent, and what is left of its message allowance."""
    head = yield from appending.head_of(parent_id)
    assert head is not None, "a branch has a parent"
    yield "copy_transcript", {"session_id": parent_id, "target": session_id}
    yield "copy_turns", {"session_id": parent_id, "target": session_id}
    copied = msgspec.structs.replace(head, revision=0, redo_depth=0)
    yield from _revise(session_id, copied, head.open_calls, now)
