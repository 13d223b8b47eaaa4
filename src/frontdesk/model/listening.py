"""What a platform's groups get answers to, and how long a burst of messages is waited for."""

from enum import StrEnum

import msgspec
from msgspec.structs import force_setattr

from frontdesk import errors
from frontdesk.model import inputs
from frontdesk.model.sources import ChatType, SessionSource

MOST_GATHER_SECONDS = 60.0


class Answering(StrEnum):
    """Which messages of a group are answered."""

    ADDRESSED = "addressed"
    ALWAYS = "always"


class Listening(msgspec.Struct, frozen=True, kw_only=True):
    """How one platform is listened to. What is said in private is always meant for us."""

    answer: Answering = Answering.ADDRESSED
    answer_always_in: tuple[str, ...] = ()
    """Chats, by their id, or ``chat_id:thread_id``."""
    gather_seconds: float | None = None
    """None where it is as everywhere."""

    def __post_init__(self) -> None:
        force_setattr(self, "answer", inputs.read_choice("answer", self.answer, Answering))
        chats = self.answer_always_in
        named = isinstance(chats, list | tuple) and all(
            isinstance(each, str | int) and not isinstance(each, bool) and str(each).strip() for each in chats
        )
        if not named:
            raise errors.InvalidSetting(key="answer_always_in", value=chats, allowed="a list of chat ids")
        force_setattr(self, "answer_always_in", tuple(str(each).strip() for each in chats))
        if self.gather_seconds is not None:
            force_setattr(self, "gather_seconds", check_gathering(self.gather_seconds))

    def answers_always(self, source: SessionSource) -> bool:
        """Whether whatever is said there is meant for us."""
        if source.chat_type is ChatType.DM or self.answer is Answering.ALWAYS:
            return True
        chats = {source.chat_id, source.parent_chat_id, f"{source.chat_id}:{source.thread_id}"}
        return not chats.isdisjoint(self.answer_always_in)


def check_gathering(seconds: object) -> float:
    number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    if not number or not 0 <= seconds <= MOST_GATHER_SECONDS:  # type: ignore[operator]
        allowed = f"a number up to {MOST_GATHER_SECONDS:g}; 0 turns it off"
        raise errors.InvalidSetting(key="gather_seconds", value=seconds, allowed=allowed)
    return float(seconds)  # type: ignore[arg-type]
