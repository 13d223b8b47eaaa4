"""A session service in memory, written from the specification alone: what the stores are compared with.

It keeps everything in plain lists and works everything out anew each time. Ids are the store's to choose:
what may start a session is told the id that the store gave, and takes it only when it agrees that one is due.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, time, timedelta
from typing import Any

from frontdesk import EndReason, ResetMode, SessionResetPolicy, SessionSource

Message = dict[str, Any]
INTERRUPTED = "[interrupted: the tool call has no result]"
AUTOMATIC = {"idle", "daily", "message_limit", "token_limit", "cost_limit", "time_limit", "spiral"}
FRESHNESS = timedelta(hours=1)
TOKENS = ("input_tokens", "output_tokens")


@dataclass
class Row:
    message: Message
    position: int
    chat: str
    turn: tuple[str, int] | None = None
    hidden: bool = False

    @property
    def platform_id(self) -> str | None:
        return self.message.get("platform_message_id")

    @property
    def counts(self) -> bool:
        return bool(self.message["role"] != "session_meta")

    @property
    def is_user_turn(self) -> bool:
        return self.message["role"] == "user" and not self.message.get("observed")


@dataclass
class Session:
    id: str
    key: str
    created_at: datetime
    updated_at: datetime
    origin: SessionSource
    display_name: str | None
    end: str | None = None
    parent: "Session | None" = None
    continues_parent: bool = False
    rows: list[Row] = field(default_factory=list)
    next_position: int = 0
    counted_from: int = 0
    undone: list[list[Row]] = field(default_factory=list)
    served: set[datetime] = field(default_factory=set)
    model_turns: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    was_auto_reset: bool = False
    auto_reset_reason: str | None = None
    reset_had_activity: bool = False
    is_fresh_reset: bool = False
    expiry_finalized: bool = False
    suspended: bool = False
    resume_reason: str | None = None
    marked_at: datetime | None = None
    model_override: dict[str, str] | None = None

    @property
    def live(self) -> list[Row]:
        return sorted((row for row in self.rows if not row.hidden), key=lambda row: row.position)

    @property
    def transcript(self) -> list[Message]:
        return [row.message for row in self.live]

    @property
    def message_count(self) -> int:
        return sum(row.counts and row.position >= self.counted_from for row in self.live)

    @property
    def open_calls(self) -> list[str]:
        calls: list[str] = []
        for message in self.transcript:
            if closes_calls(message):
                calls = []
            calls = [call for call in calls if call != message.get("tool_call_id")]
            calls += [call["id"] for call in message.get("tool_calls", [])]
        return calls

    def facts(self) -> dict[str, Any]:
        """What the entry must say."""
        return {
            "session_id": self.id,
            "session_key": self.key,
            "created_at": self.created_at,
            "updated_at": self.updated_at,
            "origin": self.origin,
            "display_name": self.display_name,
            "platform": self.origin.platform,
            "chat_type": self.origin.chat_type,
            "message_count": self.message_count,
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "was_auto_reset": self.was_auto_reset,
            "auto_reset_reason": self.auto_reset_reason,
            "reset_had_activity": self.reset_had_activity,
            "is_fresh_reset": self.is_fresh_reset,
            "expiry_finalized": self.expiry_finalized,
            "suspended": self.suspended,
            "resume_pending": self.resume_reason is not None,
            "resume_reason": self.resume_reason,
            "last_resume_marked_at": self.marked_at,
            "model_override": self.model_override,
        }

    def clear_flags(self) -> None:
        self.was_auto_reset = self.reset_had_activity = self.is_fresh_reset = False
        self.auto_reset_reason = None

    def clear_mark(self) -> None:
        self.resume_reason = self.marked_at = None


def closes_calls(message: Message) -> bool:
    return message["role"] in ("user", "assistant") and not message.get("observed")


def boundary_before(now: datetime, hour: int) -> datetime:
    """The last time the clock showed that hour; policies of the reference are in UTC."""
    today = datetime.combine(now.date(), time(hour), now.tzinfo)
    return today if today <= now else today - timedelta(days=1)


class Reference:
    def __init__(self, policies: dict[str, SessionResetPolicy]) -> None:
        self.policies = policies
        self.sessions: dict[str, Session] = {}
        self.routes: dict[str, str] = {}
        self.busy: set[str] = set()

    def current(self, key: str) -> Session | None:
        return self.sessions.get(self.routes.get(key, ""))

    def policy_of(self, source: SessionSource) -> SessionResetPolicy:
        return self.policies[source.chat_type]

    # resolving

    def resolve(
        self, key: str, source: SessionSource, now: datetime, given: str, force_new: bool = False
    ) -> Session:
        current = self.current(key)
        if force_new or current is None:
            return self._start(key, source, now, given, current, None)
        if current.end not in (None, "closed"):
            reason = current.end if current.end in AUTOMATIC else None
            return self._start(key, source, now, given, current, reason)
        reason = self._reason_to_start(current, source, now)
        if reason is not None:
            return self._start(key, source, now, given, current, reason)
        current.expiry_finalized = False
        current.end = None
        current.updated_at = now
        return current

    def _reason_to_start(self, session: Session, source: SessionSource, now: datetime) -> str | None:
        if session.suspended:
            return "suspended"
        reason = None if session.key in self.busy else self.policy_reason(session, source, now)
        if reason is None and session.resume_reason is not None:
            since = session.marked_at or session.updated_at
            return "resume_pending_expired" if now - since > FRESHNESS else None
        return reason

    def policy_reason(self, session: Session, source: SessionSource, now: datetime) -> str | None:
        policy = self.policy_of(source)
        idle = timedelta(minutes=policy.idle_minutes)
        if policy.mode in (ResetMode.IDLE, ResetMode.BOTH) and now - session.updated_at > idle:
            return "idle"
        boundary = boundary_before(now, policy.at_hour)
        missed = session.updated_at < boundary and boundary not in session.served
        if policy.mode in (ResetMode.DAILY, ResetMode.BOTH) and missed:
            return "daily"
        return "message_limit" if 0 < policy.max_messages <= session.message_count else None

    def _start(
        self,
        key: str,
        source: SessionSource,
        now: datetime,
        given: str,
        old: Session | None,
        reason: str | None,
    ) -> Session:
        """A new session by way of a message."""
        fresh = self._succeed(key, source, now, given, old, reason or "new")
        fresh.served.add(boundary_before(now, self.policy_of(source).at_hour))
        if reason is not None and old is not None:
            fresh.was_auto_reset = True
            fresh.auto_reset_reason = reason
            fresh.reset_had_activity = old.model_turns > 0 or old.input_tokens + old.output_tokens > 0
        return fresh

    def _succeed(
        self, key: str, source: SessionSource, now: datetime, given: str, old: Session | None, end: str
    ) -> Session:
        assert given not in self.sessions, "a new session was due, and an old one came"
        self._leave(old, end)
        fresh = Session(given, key, now, now, source, source.chat_name)
        if old is not None:
            fresh = replace(
                fresh, origin=old.origin, display_name=old.display_name, parent=old, served=set(old.served)
            )
        self.sessions[given] = fresh
        self._point(key, fresh)
        return fresh

    def _leave(self, session: Session | None, end: str) -> None:
        if session is not None and session.end in (None, "closed"):
            session.end = end

    def _point(self, key: str, session: Session) -> None:
        for other in [each for each, pointed in self.routes.items() if pointed == session.id]:
            del self.routes[other]
        self.routes[key] = session.id

    # by hand

    def reset(self, key: str, now: datetime, given: str, display_name: str | None) -> Session:
        old = self.sessions[self.routes[key]]
        fresh = self._succeed(key, old.origin, now, given, old, "new")
        fresh.is_fresh_reset = True
        fresh.display_name = old.display_name if display_name is None else display_name
        return fresh

    def switch(self, key: str, target: str, now: datetime) -> Session | None:
        current, other = self.current(key), self.sessions.get(target)
        if current is None or other is None or other.end == "forgotten":
            return None
        if current is other and current.end is None:
            return current
        if current is not other:
            self._leave(current, "switch")
        other.served |= current.served
        other.end = None
        if other.key != key:
            other.origin = current.origin
        other.key = key
        other.updated_at = now
        other.suspended = other.expiry_finalized = False
        other.counted_from = other.next_position
        other.clear_flags()
        other.clear_mark()
        self._point(key, other)
        return other

    def branch(self, key: str, now: datetime, given: str) -> Session:
        old = self.sessions[self.routes[key]]
        branch = self._succeed(key, old.origin, now, given, old, "branch")
        branch.rows = list(map(replace, old.live))
        branch.next_position = old.next_position
        branch.counted_from = old.counted_from
        branch.model_turns = old.model_turns
        branch.model_override = old.model_override
        return branch

    def compress(self, key: str, transcript: Sequence[Message], now: datetime, given: str) -> Session:
        old = self.sessions[self.routes[key]]
        tip = self._succeed(key, old.origin, now, given, old, "compressed")
        tip.continues_parent = True
        tip.model_override = old.model_override
        self._add(tip, self._claimed(old, transcript, key))
        return tip

    def end(self, session_id: str, reason: EndReason) -> bool:
        session = self.sessions.get(session_id)
        if session is None or session.end == EndReason.FORGOTTEN:
            return False
        if session.end is not None and reason is not EndReason.FORGOTTEN:
            return False
        session.end = str(reason)
        return True

    def mark_recent(self, seconds: float, now: datetime) -> int:
        marked = 0
        for session_id in self.routes.values():
            session = self.sessions[session_id]
            recent = session.updated_at >= now - timedelta(seconds=seconds)
            if recent and session.end is None and not session.suspended and session.resume_reason is None:
                session.resume_reason, session.marked_at = "restart_interrupted", now
                marked += 1
        return marked

    def prune(self, days: float, now: datetime) -> int:
        stale = [
            key
            for key, session_id in self.routes.items()
            if self.sessions[session_id].updated_at < now - timedelta(days=days)
            and not self.sessions[session_id].suspended
            and key not in self.busy
        ]
        for key in stale if days > 0 else []:
            self._leave(self.sessions[self.routes.pop(key)], "pruned")
        return len(stale) if days > 0 else 0

    # transcripts

    def append(
        self,
        session: Session,
        messages: Sequence[Message],
        now: datetime,
        turn: str | None = None,
        tokens: int | None = None,
    ) -> int:
        """Store a turn; how many of its messages were new."""
        wanted = [
            (message, session.key, None if turn is None else (turn, position))
            for position, message in enumerate(messages)
        ]
        new = self._add(session, wanted)
        if new or (tokens is not None and not messages):
            session.updated_at = now
            session.undone = []
            session.input_tokens += tokens or 0
        return new

    def _add(self, session: Session, wanted: Iterable[tuple[Message, str, tuple[str, int] | None]]) -> int:
        new = 0
        for message, chat, turn in wanted:
            if self._has(session, message, chat, turn):
                continue
            if closes_calls(message):
                self._close(session)
            self._put(session, message, chat, turn)
            session.model_turns += message["role"] == "assistant"
            new += 1
        return new

    def _has(self, session: Session, message: Message, chat: str, turn: tuple[str, int] | None) -> bool:
        platform_id = message.get("platform_message_id")
        if platform_id is not None and any(
            row.platform_id == platform_id and row.chat == chat for row in session.live
        ):
            return True
        return turn is not None and any(row.turn == turn for row in session.rows)

    def _close(self, session: Session) -> int:
        calls = session.open_calls
        for call in calls:
            closing = {"role": "tool", "tool_call_id": call, "content": INTERRUPTED}
            self._put(session, closing, session.key, None)
        return len(calls)

    def _put(self, session: Session, message: Message, chat: str, turn: tuple[str, int] | None) -> None:
        session.rows.append(Row(message, session.next_position, chat, turn))
        session.next_position += 1

    def close_calls(self, session: Session, now: datetime) -> int:
        closed = self._close(session)
        if closed:
            session.updated_at = now
            session.undone = []
        return closed

    def rewind(self, session: Session, n: int, now: datetime) -> dict[str, Any] | None:
        users = [row for row in session.live if row.is_user_turn][-max(1, n) :]
        if not users:
            return None
        taken = [row for row in session.live if row.position >= users[0].position]
        for row in taken:
            row.hidden = True
        session.undone.append(taken)
        session.updated_at = now
        return self._told(taken)

    def redo(self, session: Session, now: datetime) -> dict[str, Any] | None:
        if not session.undone:
            return None
        back = session.undone.pop()
        for row in back:
            row.hidden = False
        session.updated_at = now
        return self._told(back)

    def _told(self, rows: list[Row]) -> dict[str, Any]:
        users = [row for row in rows if row.is_user_turn]
        text = users[0].message["content"]
        return {"rewound_count": len(rows), "turns_undone": len(users), "target_text": text}

    def rewrite(self, session: Session, transcript: Sequence[Message], now: datetime) -> None:
        claimed = self._claimed(session, transcript, session.key)
        turns = session.model_turns
        for row in session.live:
            row.hidden = True
        self._add(session, claimed)
        session.model_turns = turns
        session.undone = []
        session.updated_at = now

    def _claimed(
        self, session: Session, transcript: Sequence[Message], chat: str
    ) -> list[tuple[Message, str, None]]:
        """Messages that the session has come from where they came from, the others from this chat."""
        rows = [row for row in session.live if row.platform_id is not None]
        claimed: list[tuple[Message, str, None]] = []
        for message in transcript:
            same = [row for row in rows if row.message == message]
            if same:
                rows.remove(same[0])
            claimed.append((message, same[0].chat if same else chat, None))
        return claimed

    def with_ancestors(self, session: Session) -> list[Message]:
        older = self.with_ancestors(session.parent) if session.continues_parent and session.parent else []
        return older + session.transcript
