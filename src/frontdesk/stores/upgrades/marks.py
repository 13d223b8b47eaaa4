"""Keys in their older form, without marks, are moved over to the present one."""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from frontdesk.contracts.store import Row, Work
from frontdesk.logs import get_logger
from frontdesk.model import keys
from frontdesk.model.platforms import Platform
from frontdesk.model.sources import SessionSource
from frontdesk.stores.work import value

log = get_logger(__name__)

BATCH_ROWS = 2_000
ENCODED_MARKS = tuple(f"%{ord(mark):02X}" for mark in keys.MARKS)
PLACE = 2
"""The part of a key with the platform."""

STEPS = (
    "map_keys",
    "drop_shared_keys",
    "leave_owners",
    "move_sessions",
    "move_other_owners",
    "leave_routes",
    "move_routes",
    "move_sources",
    "move_turns",
    "open_lanes",
    "settle_lanes",
    "drop_lanes",
    "move_deliveries",
    "move_other_deliveries",
    "move_feed",
    "move_other_feed",
    "move_confirmations",
    "move_other_confirmations",
)
"""The queries that carry out what was worked out, in their order."""


class _Details(msgspec.Struct):
    """Of a session's or a turn's facts, where it came from."""

    origin: dict[str, Any] | None = None
    source: dict[str, Any] | None = None


class _Ruled(msgspec.Struct):
    """Of a rule, the conversation it holds for."""

    session_key: str | None = None


def mark_keys() -> Work[None]:
    """Move what is kept under keys without marks to the keys that the same sources make now.

    Each session goes where its own origin says, each turn where its own message says. Where two shared a key,
    whoever began the session has it.
    """
    plain = ",".join(("", *(name for name in Platform.known() if name.facts.distinct_ids), ""))
    moved = yield from _stage("unmarked_sessions", "stage_sessions", plain)
    moved += yield from _stage("unmarked_turns", "stage_turns", plain)
    if moved:
        yield from _carry_out()
        log.info("keys_marked", moved=moved)
    for staged in ("drop_moved_sessions", "drop_moved_turns", "drop_moved_keys"):
        yield staged, {}


def _carry_out() -> Work[None]:
    owners = yield "moved_owners", {}
    for step in STEPS:
        yield step, {}
    yield from _move_rules()
    if owners:  # the index knows whose words they are
        yield "empty_index", {}
        yield "begin_index", {}


def _stage(read: str, write: str, plain: str) -> Work[int]:
    """Note what moves where; how many do."""
    staged, after = 0, ""
    while batch := (yield read, {"after": after, "plain": plain, "limit": BATCH_ROWS}):
        moved = list(_moved(batch))
        staged += len(moved)
        if moved:
            yield write, {"rows": msgspec.json.encode(moved).decode()}
        after = batch[-1][0]
    return staged


def _moved(batch: list[Row]) -> Iterator[tuple[str, str, str]]:
    for identifier, key, facts in batch:
        new = _marked(key, bytes(facts))
        if new is not None and new != key:
            yield identifier, key, new


def _marked(key: str, facts: bytes) -> str | None:
    """The present form of a key; None when nothing tells what its parts are."""
    try:
        details = msgspec.json.decode(facts, type=_Details)
        origin = details.origin or details.source
        return _with_marks(key, origin) if origin else None
    except (msgspec.MsgspecError, ValueError, TypeError, IndexError):
        return None


def _with_marks(key: str, origin: Mapping[str, Any]) -> str | None:
    """What the origin makes of the key. Its platform may be one that is not registered any more: any whose
    ids are free text stands in for it."""
    parts = key.split(":")
    free = next(platform for platform in Platform.known() if not platform.facts.distinct_ids)
    source = SessionSource.from_dict({**origin, "platform": str(free)})
    profile = None if parts[1] == keys.DEFAULT_NAMESPACE else keys.decode_part(parts[1])
    for per_user in (True, False):
        made = keys.build_session_key(source, per_user, per_user, profile).split(":")
        made[PLACE] = parts[PLACE]
        if [*made[: PLACE + 2], *map(_unmarked, made[PLACE + 2 :])] == parts:
            return ":".join(made)
    return None


def _unmarked(part: str) -> str:
    """The part as it was written before there were marks."""
    text = part[1:] if part[:1] in keys.MARKS else part
    return keys.decode_part(text[:3]) + text[3:] if text[:3] in ENCODED_MARKS else text


def _move_rules() -> Work[None]:
    for identifier, body in (yield "ruled", {}):
        key = _ruled_key(bytes(body))
        moved = (yield from value("moved_key", key=key)) if key else None
        if moved:
            rule = msgspec.json.decode(bytes(body)) | {"session_key": moved}
            yield "move_rule", {"rule_id": identifier, "body": msgspec.json.encode(rule)}


def _ruled_key(body: bytes) -> str | None:
    try:
        return msgspec.json.decode(body, type=_Ruled).session_key
    except msgspec.MsgspecError:
        return None
