"""Sessions: the generations of a conversation."""

import math
import re
import secrets
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

import msgspec
from msgspec.structs import force_setattr, replace

from frontdesk import errors
from frontdesk.model.keys import check_key, check_session_id
from frontdesk.model.platforms import Platform
from frontdesk.model.policies import AUTOMATIC, EndReason
from frontdesk.model.sources import ChatType, SessionSource, read_chat_type, readable, short_name

MAX_COUNT = 2**53
COST_STATUS = re.compile(r"[a-z_]{1,40}")
USAGE_COUNTERS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")
REASONS = {str(reason): reason for reason in EndReason}
RESTART_TIMEOUT, RESTART_INTERRUPTED = "restart_timeout", "restart_interrupted"
"""Why a session is to be resumed: a stop did not wait for its turn; a crash cut it off."""
OVERRIDE_FIELDS = ("model", "provider", "base_url")
_SECRET_PARTS = re.compile(r"\A(?:[^/?#@]*@)+|(?<=//)(?<!///)(?:/*[^/?#@]*@)+|[?#].*", re.DOTALL)
"""The parts of an address that may hold credentials: user and password, query, fragment."""
SERVED_BOUNDARIES_KEPT = 16


class SessionStatus(StrEnum):
    OPEN = "open"
    ENDED = "ended"


class Relation(StrEnum):
    """How a session came out of its parent."""

    RESET = "reset"
    BRANCH = "branch"
    COMPRESSED = "compressed"


class Reopening(StrEnum):
    """What makes an ended session open again."""

    BY_A_MESSAGE = "the next message"
    BY_HAND = "a command"
    NEVER = "nothing"


REOPENING = dict.fromkeys(EndReason, Reopening.BY_HAND) | {
    EndReason.CLOSED: Reopening.BY_A_MESSAGE,
    EndReason.FORGOTTEN: Reopening.NEVER,
}
"""The legal moves: an open session may end for every reason; an ended one opens again as its reason says."""


def new_session_id(now: datetime) -> str:
    """``YYYYMMDD_HHMMSS_<8 hex>``."""
    return f"{now:%Y%m%d_%H%M%S}_{secrets.token_hex(4)}"


class SessionEntry(msgspec.Struct, frozen=True, kw_only=True):
    """What a key's current session is and has used."""

    session_key: str
    session_id: str
    created_at: datetime
    updated_at: datetime
    origin: SessionSource | None = None
    display_name: str | None = None
    platform: Platform | None = None
    chat_type: ChatType = ChatType.DM
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    last_prompt_tokens: int = 0
    estimated_cost_usd: float = 0.0
    cost_status: str = "unknown"
    message_count: int = 0
    was_auto_reset: bool = False
    auto_reset_reason: EndReason | None = None
    reset_had_activity: bool = False
    is_fresh_reset: bool = False
    expiry_finalized: bool = False
    suspended: bool = False
    resume_pending: bool = False
    resume_reason: str | None = None
    last_resume_marked_at: datetime | None = None
    model_override: dict[str, str] | None = None

    def __post_init__(self) -> None:
        if self.model_override is not None:
            force_setattr(self, "model_override", clean_override(self.model_override))

    @property
    def total_tokens(self) -> int:
        return self.input_tokens + self.output_tokens

    def to_dict(self) -> dict[str, Any]:
        data = msgspec.structs.asdict(self)
        for name in TIMES:
            data[name] = data[name] and data[name].isoformat()
        for name in ("platform", "chat_type", "auto_reset_reason"):
            data[name] = None if data[name] is None else str(data[name])
        data["total_tokens"] = self.total_tokens
        origin, override = data.pop("origin"), clean_override(data.pop("model_override"))
        if origin:
            data["origin"] = origin.to_dict()
        if override:
            data["model_override"] = override
        return data

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "SessionEntry":
        """Read the JSON form, older ones included; an entry that cannot be read raises InvalidEntry."""
        if not isinstance(data, Mapping):
            raise errors.InvalidEntry(name=None, why=f"expected an object, got {type(data).__name__}")
        name = data.get("session_key") or data.get("session_id")
        try:
            return cls(**_entry_fields(data))
        except KeyError as error:
            raise errors.InvalidEntry(name=name, why=f"{error.args[0]} is missing") from error
        except (TypeError, ValueError, OverflowError) as error:
            raise errors.InvalidEntry(name=name, why=str(error)) from error


TIMES = ("created_at", "updated_at", "last_resume_marked_at")


def _entry_fields(data: Mapping[str, Any]) -> dict[str, Any]:
    fields: dict[str, Any] = {name: read(data.get(name)) for name, read in _READERS.items()}
    fields |= {
        "session_key": check_key(data["session_key"]),
        "session_id": check_session_id(data["session_id"]),
        "created_at": parse_time(data["created_at"]),
        "updated_at": parse_time(data["updated_at"]),
        "origin": read_origin(data.get("origin")),
        "platform": Platform.parse(data.get("platform")),
        "chat_type": read_chat_type(data.get("chat_type") or ChatType.DM),
        "estimated_cost_usd": float(data.get("estimated_cost_usd") or 0),
        "cost_status": _readable_text(data.get("cost_status")) or "unknown",
        "expiry_finalized": bool(data.get("expiry_finalized", data.get("memory_flushed", False))),
        "last_resume_marked_at": _readable_time(data.get("last_resume_marked_at")),
        "auto_reset_reason": read_reason(data.get("auto_reset_reason")),
        "model_override": clean_override(data.get("model_override")),
    }
    if not math.isfinite(fields["estimated_cost_usd"]):
        raise ValueError(f"{data['estimated_cost_usd']!r} is no amount")
    return fields


def parse_time(value: object) -> datetime:
    """An ISO time; one without a zone is the machine's local time."""
    if not isinstance(value, str):
        raise ValueError(f"expected an ISO time, got {value!r}")
    return datetime.fromisoformat(value).astimezone(UTC)


def _readable_time(value: object) -> datetime | None:
    try:
        return parse_time(value)
    except (ValueError, OverflowError):
        return None


def _read_count(value: Any) -> int:
    count = max(0, int(value or 0))
    if count > MAX_COUNT:
        raise ValueError(f"{value!r} is too large to be a count")
    return count


def _readable_text(value: object) -> str | None:
    return readable(value) if isinstance(value, str) else None


_READ_AS: dict[Any, Callable[[Any], Any]] = {bool: bool, int: _read_count, str | None: _readable_text}
_READERS = {
    each.name: _READ_AS[each.type] for each in msgspec.structs.fields(SessionEntry) if each.type in _READ_AS
}
"""How flags, counts and texts of an entry are read, by their names; the others are read one by one."""


def read_origin(value: object) -> SessionSource | None:
    try:
        return SessionSource.from_dict(value) if isinstance(value, Mapping) else None
    except ValueError:
        return None


def read_reason(value: object) -> EndReason | None:
    return REASONS.get(str(value))


def clean_override(value: object) -> dict[str, str] | None:
    """Model, provider and base_url as texts and nothing else: credentials never get further than here."""
    if not isinstance(value, Mapping):
        return None
    kept = {name: value[name] for name in OVERRIDE_FIELDS if isinstance(value.get(name), str)}
    if "base_url" in kept:
        kept["base_url"] = _SECRET_PARTS.sub("", kept["base_url"].strip())
    cleaned = {name: readable(text).strip() for name, text in kept.items()}
    return {name: text for name, text in cleaned.items() if text} or None


class Spent(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens, and what they cost."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    cost_usd: float = 0.0


class Usage(Spent, frozen=True, kw_only=True):
    """What a turn used, to be added to the session's counters."""

    cost_status: str | None = None
    last_prompt_tokens: int | None = None

    def checked(self) -> "Usage":
        """Itself, when every count is one."""
        counts = {name: getattr(self, name) for name in USAGE_COUNTERS}
        if self.last_prompt_tokens is not None:
            counts["last_prompt_tokens"] = self.last_prompt_tokens
        for name, value in counts.items():
            if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MAX_COUNT:
                raise errors.InvalidInput(what=f"{name} = {value!r}", why=f"use 0 to {MAX_COUNT}")
        if not isinstance(self.cost_usd, int | float) or not 0 <= self.cost_usd <= MAX_COUNT:
            raise errors.InvalidInput(what=f"cost {self.cost_usd!r}", why=f"use 0 to {MAX_COUNT}")
        if self.cost_status is not None and not COST_STATUS.fullmatch(self.cost_status):
            raise errors.InvalidInput(what=f"cost_status {self.cost_status!r}", why="use a-z and '_'")
        return self


class Renewal(Spent, frozen=True, kw_only=True):
    """When a session was last given a fresh allowance, and what it had used by then."""

    at: datetime


class Session(msgspec.Struct, frozen=True, kw_only=True):
    """A session as it is stored: its entry and what the service alone needs."""

    entry: SessionEntry
    owner: str
    peer: str
    title: str | None = None
    ended_at: datetime | None = None
    end_reason: str | None = None
    parent_id: str | None = None
    relation: Relation | None = None
    root: str | None = None
    """The first of its lineage, where it was written down; None also for one that has no parent."""
    model_turns: int = 0
    counted_from: int = 0
    """The place in the transcript from which messages count against the limit."""
    served: tuple[datetime, ...] = ()
    reset_told: bool = False
    """People were told of the reset that it began with."""
    started: bool = False
    """Its first turn has begun, and the hooks were told so."""
    checkpointed: bool = False
    """The working directory was kept when the session before it ended."""
    renewal: Renewal | None = None
    begun_by: str | None = None
    resumed_by: str | None = None
    """Who had it begin by hand, and who went on with it last, by the names that they had."""
    unread_origin: dict[str, Any] | None = None
    """An origin that this installation cannot read (a plug-in's platform, say); kept as it is."""

    @property
    def id(self) -> str:
        return self.entry.session_id

    @property
    def status(self) -> SessionStatus:
        return SessionStatus.OPEN if self.ended_at is None else SessionStatus.ENDED

    @property
    def reason(self) -> EndReason | None:
        """The end reason, when it is one of ours; imported ones are kept as text."""
        return read_reason(self.end_reason)

    @property
    def reopening(self) -> Reopening:
        """What opens it again, now that it has ended. One that another program ended, a command."""
        return REOPENING[self.reason] if self.reason else Reopening.BY_HAND

    @property
    def is_forgotten(self) -> bool:
        """Whether it has ended for good."""
        return self.status is SessionStatus.ENDED and self.reopening is Reopening.NEVER

    @property
    def is_empty(self) -> bool:
        """Whether nothing was said in it."""
        return not self.entry.message_count and not self.counted_from

    @property
    def had_activity(self) -> bool:
        """Whether a model turn ever ran in it."""
        used = self.entry.total_tokens, self.entry.last_prompt_tokens
        return self.model_turns > 0 or any(used)

    def as_limited(self, entry: SessionEntry | None = None) -> SessionEntry:
        """The entry as its limits see it: what was used, and the time that passed, since the allowance was
        renewed. ``entry`` is the session's own with other counters."""
        entry, since = entry or self.entry, self.renewal
        if since is None:
            return entry
        counted = {name: max(0, getattr(entry, name) - getattr(since, name)) for name in USAGE_COUNTERS}
        cost = max(0.0, entry.estimated_cost_usd - since.cost_usd)
        return replace(entry, created_at=since.at, estimated_cost_usd=cost, **counted)

    def renewed(self, at: datetime, by: str | None = None) -> "Session":
        """With a fresh allowance of tokens, cost and time; that of messages is the store's to renew."""
        used = {name: getattr(self.entry, name) for name in USAGE_COUNTERS}
        since = Renewal(at=at, cost_usd=self.entry.estimated_cost_usd, **used)
        return replace(self, renewal=since, resumed_by=short_name(by))

    def changed(self, **fields: Any) -> "Session":
        """The same session with other facts in its entry."""
        return replace(self, entry=replace(self.entry, **fields))

    def consumed(self) -> "Session":
        """The reset flags taken by the first turn."""
        return self.changed(
            was_auto_reset=False, auto_reset_reason=None, reset_had_activity=False, is_fresh_reset=False
        )

    def marked(self, reason: str, now: datetime) -> "Session":
        """To be resumed."""
        return self.changed(resume_pending=True, resume_reason=reason, last_resume_marked_at=now)

    def unmarked(self) -> "Session":
        """Not to be resumed any more."""
        return self.changed(resume_pending=False, resume_reason=None, last_resume_marked_at=None)

    def reopened(self, at: datetime) -> "Session":
        """Open again and active now; its marks and flags are gone."""
        if self.reopening is Reopening.NEVER:
            raise errors.IllegalMove(state=f"ended ({self.end_reason})", wanted="open")
        fresh = self.consumed().unmarked().changed(updated_at=at, suspended=False, expiry_finalized=False)
        return replace(fresh, ended_at=None, end_reason=None)

    def successor(
        self,
        session_id: str,
        at: datetime,
        reason: EndReason,
        *,
        served: datetime | None = None,
        relation: Relation = Relation.RESET,
        by: str | None = None,
    ) -> "Session":
        """The next generation of the same conversation; ``by`` is who wants it."""
        automatic = reason in AUTOMATIC
        old = self.entry
        entry = SessionEntry(
            session_key=old.session_key,
            session_id=session_id,
            created_at=at,
            updated_at=at,
            origin=old.origin,
            display_name=old.display_name,
            platform=old.platform,
            chat_type=old.chat_type,
            was_auto_reset=automatic,
            auto_reset_reason=reason if automatic else None,
            reset_had_activity=automatic and self.had_activity,
            is_fresh_reset=reason is EndReason.NEW,
            model_override=None if relation is Relation.RESET else old.model_override,
        )
        return Session(
            entry=entry,
            owner=self.owner,
            peer=self.peer,
            parent_id=self.id,
            relation=relation,
            root=self.id if self.parent_id is None else self.root,
            served=with_boundary(self.served, served),
            begun_by=short_name(by),
            unread_origin=self.unread_origin,
        )


def with_boundary(served: tuple[datetime, ...], boundary: datetime | None) -> tuple[datetime, ...]:
    """The daily boundaries a conversation has been reset for: this one and the latest of the others.

    One that a clock running ahead has served is kept until the clock gets there again.
    """
    if boundary is None or boundary in served:
        return served
    return (*sorted(served)[1 - SERVED_BOUNDARIES_KEPT :], boundary)
