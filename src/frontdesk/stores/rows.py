"""What stands in the rows of each table, each column once."""

from collections import defaultdict
from datetime import datetime
from functools import lru_cache
from typing import Any

import msgspec
from msgspec.structs import asdict

from frontdesk.contracts.store import Row
from frontdesk.logs import get_logger
from frontdesk.model import deliveries, people, sessions, turns
from frontdesk.model.access import Grant, Role
from frontdesk.model.background import BackgroundTask
from frontdesk.model.buttons import ButtonAction, KeptButton, LiveButton
from frontdesk.model.chats import Attachment, Button, Quote, ReplyHandle, StoredFile
from frontdesk.model.codes import CodeKind, Pairing
from frontdesk.model.deliveries import Delivery
from frontdesk.model.feed import FeedEvent, FeedKind, FeedPosition
from frontdesk.model.files import FileWay, KeptFile
from frontdesk.model.keys import check_key, check_session_id
from frontdesk.model.platforms import Platform
from frontdesk.model.sessions import Relation, Renewal, Session, SessionEntry
from frontdesk.model.sources import CHAT_TYPES, ChatType, SessionSource
from frontdesk.model.usage import UsageDay
from frontdesk.stores import columns
from frontdesk.stores.columns import FLAG, PLAIN, TIME, Column, Columns, Document, Records
from frontdesk.stores.confirmation_rows import AUDIT_ROW, CONFIRMATION, REQUESTER_PAUSE
from frontdesk.stores.pass_rows import PASS

log = get_logger(__name__)

KEPT_DETAILS_BYTES = 4_096
UNREADABLE_ROW = "its row cannot be read"
READ_CHAT_TYPES = defaultdict(lambda: ChatType.DM, CHAT_TYPES)
RELATIONS = {str(relation): relation for relation in Relation}
SOURCE = Column(SessionSource.from_dict, SessionSource.to_dict)


# Sessions


ENTRY = Columns(
    {
        "id": Column(check_session_id, field="session_id"),
        "session_key": Column(check_key),
        "platform": Column(Platform.parse, str),
        "chat_type": Column(READ_CHAT_TYPES.__getitem__, str),
        "created_at": TIME,
        "updated_at": TIME,
        "was_auto_reset": FLAG,
        "auto_reset_reason": Column(sessions.read_reason, str),
        "reset_had_activity": FLAG,
        "is_fresh_reset": FLAG,
        "expiry_finalized": FLAG,
        "suspended": FLAG,
        "resume_pending": FLAG,
        "last_resume_marked_at": TIME,
    },
    kept=dict.fromkeys(
        ["message_count", *sessions.USAGE_COUNTERS, "estimated_cost_usd", "cost_status"], PLAIN
    )
    | {"last_prompt_tokens": PLAIN},
)
SESSION = Columns(
    {
        "owner": PLAIN,
        "peer": PLAIN,
        "ended_at": TIME,
        "end_reason": PLAIN,
        "parent_id": Column(check_session_id),
        "relation": Column(RELATIONS.get, str),
    },
    kept={"title": PLAIN, "counted_from": PLAIN, "model_turns": PLAIN},
    after=ENTRY,
)
BORN_WITH = frozenset({"id", "owner", "platform", "created_at", "parent_id", "relation"})
"""What stays with a session, or is changed by a query that says how."""


class SessionDetails(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    origin: dict[str, Any] | None = None
    display_name: str | None = None
    resume_reason: str | None = None
    model_override: dict[str, str] | None = None
    served: tuple[int, ...] = ()
    reset_told: bool = False
    started: bool = False
    checkpointed: bool = False
    root: str | None = None
    renewal: dict[str, int | float] | None = None
    """What it had used by when, the time in microseconds."""
    begun_by: str | None = None
    resumed_by: str | None = None


def _read_renewal(renewed: dict[str, int | float]) -> Renewal:
    return msgspec.convert(renewed | {"at": columns.from_micros(int(renewed["at"]))}, Renewal)


def _write_renewal(renewal: Renewal) -> dict[str, int | float]:
    return asdict(renewal) | {"at": columns.to_micros(renewal.at)}


DETAILS = Document(
    SessionDetails,
    model_override=Column(write=sessions.clean_override),
    served=Column(
        lambda served: tuple(map(columns.from_micros, served)),
        lambda served: tuple(map(columns.to_micros, served)),
    ),
    renewal=Column(_read_renewal, _write_renewal),
)
DETAILS_OF_ENTRY = [name for name in DETAILS.names if name in SessionEntry.__struct_fields__]


@lru_cache(maxsize=4096)
def _read_details(blob: bytes) -> tuple[dict[str, Any], dict[str, Any]] | None:
    """The facts of the entry and of the session; None when the blob cannot be read."""
    try:
        facts = DETAILS.facts(blob)
    except columns.SENSELESS:
        return None
    entry = {name: facts.pop(name) for name in DETAILS_OF_ENTRY}
    origin = entry["origin"]
    entry["origin"] = sessions.read_origin(origin)
    return entry, facts | {"unread_origin": None if entry["origin"] else origin}


def _session(row: Row) -> dict[str, Any]:
    blob = bytes(row[-1])
    details = (_read_details if len(blob) <= KEPT_DETAILS_BYTES else _read_details.__wrapped__)(blob)
    if details is None:
        log.warning("session_details_unreadable", session=row[0])
    of_entry, own = details or ({}, {})
    return {"entry": SessionEntry(**ENTRY.facts(row), **of_entry), **SESSION.facts(row), **own}


SESSIONS = Records("session", Session, _session)


def session_row(session: Session) -> dict[str, Any]:
    """The values of ``insert_session`` and ``update_session``."""
    entry = session.entry
    facts = {**asdict(session), **asdict(entry)}
    facts["origin"] = entry.origin.to_dict() if entry.origin else session.unread_origin
    return {
        **ENTRY.values(facts),
        **SESSION.values(facts),
        "details": DETAILS.write(facts),
        "active_minute": columns.to_minute(entry.updated_at),
    }


# Turns


class TurnBody(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    source: dict[str, Any]
    text: str
    content: str | list[dict[str, Any]] | None = None
    history: list[dict[str, Any]] | None = None
    role: str | None = None
    author: people.Author | None = None
    about: str | None = None
    token: str | None = None
    files: tuple[Attachment, ...] = ()
    quote: Quote | None = None
    handle: ReplyHandle | None = None
    album: str | None = None
    instructions: str | None = None
    follows: str | None = None
    noted: dict[str, Any] = {}
    sent_at: datetime | None = None
    withdrawn: bool = False
    stopped_by: str | None = None


TURN = Columns(
    {
        "id": PLAIN,
        "kind": Column(turns.TurnKind, str),
        "session_key": Column(check_key),
        "party": PLAIN,
        "event_id": PLAIN,
        "received_at": TIME,
    },
    kept={
        "state": Column(turns.TurnState),
        "session_id": Column(check_session_id),
        "started_at": TIME,
        "finished_at": TIME,
        "attempts": PLAIN,
        "put_backs": PLAIN,
        "on_trial": FLAG,
        "doubts": PLAIN,
        "interrupted_at": TIME,
        "steers": FLAG,
        "stop_requested": FLAG,
        "error": PLAIN,
        "draft": PLAIN,
        "part_of": PLAIN,
        "parts": PLAIN,
        "number": PLAIN,
    },
    body=Document(TurnBody, source=SOURCE),
)
TURNS = Records("turn", turns.Turn, TURN.facts)


# Deliveries


class DeliveryBody(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    to: dict[str, Any]
    text: str
    is_markdown: bool = False
    final: bool = True
    event_id: str | None = None
    extra: dict[str, Any] = {}
    buttons: tuple[Button, ...] = ()
    files: tuple[StoredFile, ...] = ()
    handle: ReplyHandle | None = None
    unsure_since: datetime | None = None


def _shown(buttons: tuple[Button, ...]) -> tuple[Button, ...]:
    """What they do stands in a table of its own."""
    return tuple([each.shown if isinstance(each, LiveButton) else each for each in buttons])


DELIVERY_BODY = Document(DeliveryBody, to=SOURCE, buttons=Column(write=_shown))
DELIVERY = Columns(
    {
        "id": PLAIN,
        "lane": PLAIN,
        "kind": Column(deliveries.DeliveryKind, str),
        "turn_id": PLAIN,
        "session_id": PLAIN,
        "session_key": PLAIN,
        "created_at": TIME,
    },
    kept={
        "state": Column(deliveries.DeliveryState),
        "due_at": TIME,
        "sent_at": TIME,
        "attempts": PLAIN,
        "error": PLAIN,
        "platform_message_id": PLAIN,
        "number": PLAIN,
    },
    body=DELIVERY_BODY,
)
DELIVERIES = Records("delivery", Delivery, DELIVERY.facts)


def delivery_row(delivery: Delivery) -> dict[str, Any]:
    return {
        **DELIVERY.values(asdict(delivery)),
        "state": str(delivery.state),
        "attempts": delivery.attempts,
        "platform": str(delivery.to.platform),
        "account": delivery.to.account or "",
        "confirmation_id": delivery.confirmation_id,
    }


def delivery_body(delivery: Delivery) -> bytes:
    return DELIVERY_BODY.write(asdict(delivery))


def erased_body(blob: bytes) -> bytes:
    """The body of a delivery that says nothing any more."""
    try:
        nothing: Any = {"text": deliveries.ERASED, "extra": {}, "buttons": (), "files": (), "handle": None}
        return DELIVERY_BODY.write(DELIVERY_BODY.facts(blob) | nothing)
    except columns.SENSELESS:
        return b"{}"


BUTTON = Columns(
    {
        "token": PLAIN,
        "delivery_id": PLAIN,
        "chat": PLAIN,
        "sign": PLAIN,
        "does": Column(msgspec.json.Decoder(ButtonAction).decode, msgspec.json.encode),
        "until": TIME,
    },
    kept={"used_at": TIME, "used_by": PLAIN},
)
BUTTONS = Records("button", KeptButton, BUTTON.facts)


# Files

KEPT_FILE = Columns(
    {
        "turn_id": PLAIN,
        "way": Column(FileWay, str),
        "place": PLAIN,
        "session_id": PLAIN,
        "name": Column(write=columns.clean),
        "kind": PLAIN,
        "size": PLAIN,
        "digest": PLAIN,
        "said": Column(write=columns.clean),
        "why": Column(write=columns.clean),
        "kept_at": TIME,
        "brought_by": Column(write=columns.clean),
    }
)
KEPT_FILES = Records("kept_file", KeptFile, KEPT_FILE.facts)


# The feed, and background work

FEED_EVENT = Columns(
    {
        "at": TIME,
        "kind": Column(FeedKind, str),
        "session_key": PLAIN,
        "session_id": PLAIN,
        "turn_id": PLAIN,
        "delivery_id": PLAIN,
        "confirmation_id": PLAIN,
        "state": PLAIN,
    }
)
FEED = Records(
    "feed_event",
    FeedEvent,
    lambda row: {"place": FeedPosition(*row[-3:-1]), "owner": row[-4], **FEED_EVENT.facts(row)},
)

BACKGROUND_TASK = Columns(
    {"session_key": PLAIN, "name": Column(write=columns.clean), "begun_at": TIME, "until": TIME}
)
BACKGROUND = Records("background", BackgroundTask, BACKGROUND_TASK.facts)


# People

GRANT = Columns(
    {
        "principal": PLAIN,
        "platform": PLAIN,
        "role": Column(Role, str),
        "granted_at": TIME,
        "granted_by": PLAIN,
        "name": PLAIN,
    }
)
GRANTS = Records("grant", Grant, GRANT.facts)

PAIRING = Columns(
    {
        "principal": PLAIN,
        "kind": Column(CodeKind, str),
        "platform": PLAIN,
        "created_at": TIME,
        "expires_at": TIME,
        "name": PLAIN,
    }
)
PAIRINGS = Records("pairing", Pairing, PAIRING.facts)

LOCKOUT = Columns({"failures": PLAIN, "since": TIME, "locked_until": TIME})


USAGE_DAY = Columns(
    dict.fromkeys(["day", *UsageDay.__struct_fields__[1:]], PLAIN),
)

NAMED = {
    "usage_day": USAGE_DAY.names,
    "session": (*SESSION.names, "details"),
    "turn": TURN.names,
    "delivery": DELIVERY.names,
    "button": BUTTON.names,
    "kept_file": KEPT_FILE.names,
    "feed_event": FEED_EVENT.names,
    "background_task": BACKGROUND_TASK.names,
    "grant": GRANT.names,
    "pairing": PAIRING.names,
    "lockout": LOCKOUT.names,
    "confirmation": CONFIRMATION.names,
    "requester_pause": REQUESTER_PAUSE.names,
    "audit_row": AUDIT_ROW.names,
    "pass": PASS.names,
}
"""The columns that a query names as ``{turn}``, or ``{t.turn}`` where it calls the table t."""

WRITTEN = (*SESSION.written, "details", "active_minute")
PARTS = {
    "new_session": f"({', '.join(WRITTEN)}) VALUES ({', '.join(f':{name}' for name in WRITTEN)})",
    "changed_session": ", ".join(f"{name} = :{name}" for name in WRITTEN if name not in BORN_WITH),
}
"""What queries that write a session are made of."""
