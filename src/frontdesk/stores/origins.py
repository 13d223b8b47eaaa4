"""Origins: the conversation that each message of a transcript came from, which a rewrite keeps."""

from collections.abc import Sequence

import msgspec

from frontdesk.contracts.store import Work
from frontdesk.model.keys import encode_part
from frontdesk.model.messages import Message


def with_sources(session_id: str, messages: Sequence[Message]) -> Work[list[Message]]:
    """The messages, those that the session has with the conversation each came from: the same id in two chats
    is two messages."""
    known: dict[str, list[tuple[bytes, str]]] = {}
    for platform_id, body, source_key in (yield "live_sources", {"session_id": session_id}):
        known.setdefault(platform_id, []).append((bytes(body), source_key))
    return [_claim_source(message, known) for message in messages]


def _claim_source(message: Message, known: dict[str, list[tuple[bytes, str]]]) -> Message:
    if message.platform_message_id is None:
        return message
    rows_with_id = known.get(encode_part(message.platform_message_id))
    if not rows_with_id:
        return message
    claimed = next((each for each in rows_with_id if each[0] == message.body), rows_with_id[0])
    rows_with_id.remove(claimed)
    return msgspec.structs.replace(message, source_key=claimed[1])
