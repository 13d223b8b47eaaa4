"""Rows to records and back."""

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

import msgspec

from frontdesk.contracts.store import Row
from frontdesk.logs import get_logger
from frontdesk.model.keys import check_key, check_session_id
from frontdesk.model.platforms import Platform
from frontdesk.model.sessions import (
    Relation,
    Renewal,
    Session,
    SessionEntry,
    Usage,
    clean_override,
    read_origin,
    read_reason,
)
from frontdesk.model.sources import OLD_CHAT_TYPES, ChatType, SessionSource

log = get_logger(__name__)

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
MICROS_A_MINUTE = 60_000_000


def to_micros(moment: datetime) -> int:
    return (moment - EPOCH) // MICROSECOND


def from_micros(micros: int) -> datetime:
    return EPOCH + timedelta(microseconds=micros)


def to_minute(moment: datetime) -> int:
    """The minute that a moment is found under."""
    return to_micros(moment) // MICROS_A_MINUTE


def maybe_micros(moment: datetime | None) -> int | None:
    return None if moment is None else to_micros(moment)


def maybe_time(micros: int | None) -> datetime | None:
    return None if micros is None else from_micros(micros)


class Renewed(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A renewal as JSON."""

    at: int
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float = 0.0


def clean(text: str | None) -> str | None:
    """A text of ours or an agent's as every database takes it."""
    return None if text is None else text.replace("\0", " ").encode(errors="replace").decode()


class Details(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What no query looks at, as JSON."""

    origin: dict[str, Any] | None = None
    display_name: str | None = None
    resume_reason: str | None = None
    model_override: dict[str, str] | None = None
    served: tuple[int, ...] = ()
    reset_told: bool = False
    started: bool = False
    checkpointed: bool = False
    renewal: Renewed | None = None


class _Read(msgspec.Struct, frozen=True):
    """Details as they are used."""

    origin: SessionSource | None = None
    unread_origin: dict[str, Any] | None = None
    display_name: str | None = None
    resume_reason: str | None = None
    model_override: dict[str, str] | None = None
    served: tuple[datetime, ...] = ()
    reset_told: bool = False
    started: bool = False
    checkpointed: bool = False
    renewal: Renewal | None = None


def write_details(session: Session) -> bytes:
    entry = session.entry
    return msgspec.json.encode(
        Details(
            origin=entry.origin.to_dict() if entry.origin else session.unread_origin,
            display_name=entry.display_name,
            resume_reason=entry.resume_reason,
            model_override=clean_override(entry.model_override),
            served=tuple(map(to_micros, session.served)),
            reset_told=session.reset_told,
            started=session.started,
            checkpointed=session.checkpointed,
            renewal=_write_renewal(session.renewal),
        )
    )


def _write_renewal(renewal: Renewal | None) -> Renewed | None:
    if renewal is None:
        return None
    return Renewed(**msgspec.structs.asdict(renewal) | {"at": to_micros(renewal.at)})


def _read_renewal(renewed: Renewed | None) -> Renewal | None:
    if renewed is None:
        return None
    return Renewal(**msgspec.structs.asdict(renewed) | {"at": from_micros(renewed.at)})


@lru_cache(maxsize=4096)
def _read_details(blob: bytes) -> _Read | None:
    """None when the blob cannot be read."""
    try:
        details = msgspec.json.decode(blob, type=Details)
        served = tuple(map(from_micros, details.served))
        renewal = _read_renewal(details.renewal)
    except (msgspec.MsgspecError, UnicodeDecodeError, OverflowError):
        return None
    origin = read_origin(details.origin)
    return _Read(
        origin=origin,
        unread_origin=None if origin else details.origin,
        display_name=details.display_name,
        resume_reason=details.resume_reason,
        model_override=details.model_override,
        served=served,
        reset_told=details.reset_told,
        started=details.started,
        checkpointed=details.checkpointed,
        renewal=renewal,
    )


def _details_of(session_id: str, blob: bytes) -> _Read:
    details = _read_details(bytes(blob))
    if details is None:
        log.warning("session_details_unreadable", session=session_id)
        return _Read()
    return details


def read_session(row: Row) -> Session | None:
    """The session; None, with a warning that names it, when its row makes no sense."""
    try:
        return _session(row)
    except (OverflowError, ValueError, TypeError) as error:
        log.warning("session_unreadable", session=row[0], why=str(error))
        return None


def _session(row: Row) -> Session:
    (
        session_id, session_key, owner, peer, platform, chat_type, created_at, updated_at, ended_at,
        end_reason, parent_id, relation, title, _title_key, message_count, counted_from, _next_position,
        _revision, _redo_depth, _open_calls, input_tokens, output_tokens, cache_read_tokens,
        cache_write_tokens, last_prompt_tokens, estimated_cost_usd, cost_status, model_turns, was_auto_reset,
        auto_reset_reason, reset_had_activity, is_fresh_reset, expiry_finalized, suspended, resume_pending,
        last_resume_marked_at, blob,
    ) = row[:COLUMNS]  # fmt: skip
    details = _details_of(session_id, blob)
    entry = SessionEntry(
        session_key=check_key(session_key),
        session_id=check_session_id(session_id),
        created_at=from_micros(created_at),
        updated_at=from_micros(updated_at),
        origin=details.origin,
        display_name=details.display_name,
        platform=Platform.parse(platform),
        chat_type=CHAT_TYPES.get(chat_type, ChatType.DM),
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        cache_read_tokens=cache_read_tokens,
        cache_write_tokens=cache_write_tokens,
        last_prompt_tokens=last_prompt_tokens,
        estimated_cost_usd=estimated_cost_usd,
        cost_status=cost_status,
        message_count=message_count,
        was_auto_reset=bool(was_auto_reset),
        auto_reset_reason=read_reason(auto_reset_reason),
        reset_had_activity=bool(reset_had_activity),
        is_fresh_reset=bool(is_fresh_reset),
        expiry_finalized=bool(expiry_finalized),
        suspended=bool(suspended),
        resume_pending=bool(resume_pending),
        resume_reason=details.resume_reason,
        last_resume_marked_at=maybe_time(last_resume_marked_at),
        model_override=details.model_override and dict(details.model_override),
    )
    return Session(
        entry=entry,
        owner=owner,
        peer=peer,
        title=title,
        ended_at=maybe_time(ended_at),
        end_reason=end_reason,
        parent_id=parent_id and check_session_id(parent_id),
        relation=RELATIONS.get(relation),
        model_turns=model_turns,
        counted_from=counted_from,
        served=details.served,
        reset_told=details.reset_told,
        started=details.started,
        checkpointed=details.checkpointed,
        renewal=details.renewal,
        unread_origin=details.unread_origin,
    )


COLUMNS = 37
CHAT_TYPES = {str(chat_type): chat_type for chat_type in ChatType} | OLD_CHAT_TYPES
RELATIONS = {str(relation): relation for relation in Relation}


def new_row(session: Session) -> dict[str, Any]:
    """The values of ``insert_session``."""
    entry = session.entry
    return {
        "id": session.id,
        "session_key": entry.session_key,
        "owner": session.owner,
        "peer": session.peer,
        "platform": None if entry.platform is None else str(entry.platform),
        "chat_type": str(entry.chat_type),
        "created_at": to_micros(entry.created_at),
        "updated_at": to_micros(entry.updated_at),
        "parent_id": session.parent_id,
        "relation": None if session.relation is None else str(session.relation),
        **_reset_flags(entry),
        "details": write_details(session),
        "active_minute": to_minute(entry.updated_at),
    }


def changed_row(session: Session) -> dict[str, Any]:
    """The values of ``update_session``."""
    entry = session.entry
    return {
        "id": session.id,
        "session_key": entry.session_key,
        "peer": session.peer,
        "platform": None if entry.platform is None else str(entry.platform),
        "chat_type": str(entry.chat_type),
        "updated_at": to_micros(entry.updated_at),
        "ended_at": maybe_micros(session.ended_at),
        "end_reason": session.end_reason,
        **_reset_flags(entry),
        "expiry_finalized": int(entry.expiry_finalized),
        "suspended": int(entry.suspended),
        "resume_pending": int(entry.resume_pending),
        "last_resume_marked_at": maybe_micros(entry.last_resume_marked_at),
        "details": write_details(session),
        "active_minute": to_minute(entry.updated_at),
    }


def _reset_flags(entry: SessionEntry) -> dict[str, Any]:
    reason = entry.auto_reset_reason
    return {
        "was_auto_reset": int(entry.was_auto_reset),
        "auto_reset_reason": None if reason is None else str(reason),
        "reset_had_activity": int(entry.reset_had_activity),
        "is_fresh_reset": int(entry.is_fresh_reset),
    }


def usage_values(usage: Usage) -> dict[str, Any]:
    """The values of what a turn used, under the names of the queries."""
    return msgspec.structs.asdict(usage)
