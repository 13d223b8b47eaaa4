"""The conversation as a small model can take it: plain texts, the newest that fit."""

from collections.abc import Callable, Sequence

from frontdesk.model import messages
from frontdesk.model.messages import Plain, Role

Estimate = Callable[[str], int]

FRAME_TOKENS = 8
"""What a message takes besides its text."""
SPEAKERS = (Role.USER, Role.ASSISTANT)
CUT = " …"


def most_tokens(text: str) -> int:
    """More tokens than this the text cannot have: each is a byte at least."""
    return len(text.encode("utf-8", "replace"))


def fit(transcript: Sequence[Plain], system: str, room_tokens: int, estimate: Estimate) -> list[Plain]:
    """The system prompt and the newest messages within the room, from one of the user's to one of the user's.

    The message to be answered is always there, cut when it has to be.
    """
    spoken = _until_user([message for row in transcript if (message := _spoken(row))])
    system = _cut(system, room_tokens // 2, estimate)
    room_tokens -= estimate(system) + FRAME_TOKENS
    kept: list[Plain] = []
    for message in reversed(spoken):
        if not kept:
            message["content"] = _cut(message["content"], room_tokens - FRAME_TOKENS, estimate)
        room_tokens -= estimate(message["content"]) + FRAME_TOKENS
        if kept and room_tokens < 0:
            break
        kept.append(message)
    recent = _until_user(kept)[::-1]
    return [{"role": "system", "content": system}, *recent]


def _spoken(row: Plain) -> Plain | None:
    """A message with words of somebody; tools and notes are beyond a small model."""
    if row.get("role") not in SPEAKERS or not messages.text_of(row).strip():
        return None
    heard = messages.as_heard(row)
    # The marks of the model's own template are no longer marks.
    return {"role": str(heard["role"]), "content": messages.text_of(heard).strip().replace("<|", "< |")}


def _until_user(spoken: list[Plain]) -> list[Plain]:
    """Without the assistant's messages at its end."""
    kept = list(spoken)
    while kept and kept[-1]["role"] != Role.USER:
        kept.pop()
    return kept


def _cut(text: str, room_tokens: int, estimate: Estimate) -> str:
    """As much of the text's beginning as fits."""
    if estimate(text) <= room_tokens:
        return text
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if estimate(text[:middle] + CUT) <= room_tokens else (low, middle - 1)
    return text[:low] + CUT
