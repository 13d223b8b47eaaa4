"""How the gateway runs: what is done at once, how long anything may take, what people are told."""

import msgspec

from frontdesk import errors
from frontdesk.model import destinations
from frontdesk.model.lanes import LEASE_SECONDS
from frontdesk.model.listening import check_gathering
from frontdesk.model.turns import Busy

DAY_SECONDS = 24 * 3600
SHORTEST_LEASE_SECONDS = 3.0
AT_LEAST_ONE = (
    "most_waiting",
    "most_waiting_per_person",
    "keep_days",
    "turns_at_once",
    "commands_at_once",
    "deliveries_at_once",
)
CHATS = (
    'a list of chats, each "platform:chat_id" or "platform:chat_id:thread_id"; "platform:*" for all of one'
)


class Running(msgspec.Struct, frozen=True, kw_only=True):
    """What each field means is said once, in the table of settings."""

    busy_mode: Busy = Busy.QUEUE
    busy_notice: bool = True
    most_waiting: int = 100
    most_waiting_per_person: int = 1_000
    turns_at_once: int = 32
    commands_at_once: int = 8
    deliveries_at_once: int = 32
    turn_seconds: float = 1800.0
    turn_idle_seconds: float = 600.0
    stop_seconds: float = 5.0
    drain_seconds: float = 8.0  # docker kills after ten
    send_seconds: float = 60.0
    delivery_max_age_seconds: float = DAY_SECONDS
    keep_days: int = 30
    prune_days: int = 0
    lease_seconds: float = LEASE_SECONDS
    expiry_check_seconds: float = 60.0
    extra_prompt: str | None = None
    tell_times: bool = True
    redact_pii: bool = False
    checkpoints: bool = False
    working_dir: str | None = None
    close_after_answer: tuple[str, ...] = ()
    progress: bool = True
    status_reactions: bool = False
    send_to: tuple[str, ...] = ()
    gather_seconds: float = 0.0

    def __post_init__(self) -> None:
        for name in AT_LEAST_ONE:
            if getattr(self, name) < 1:
                raise errors.InvalidSetting(key=name, value=getattr(self, name), allowed="1 or more")
        if self.lease_seconds < SHORTEST_LEASE_SECONDS:
            allowed = f"{SHORTEST_LEASE_SECONDS:g} or more"
            raise errors.InvalidSetting(key="lease_seconds", value=self.lease_seconds, allowed=allowed)
        _check_chats(self.send_to)
        check_gathering(self.gather_seconds)


def _check_chats(chats: object) -> None:
    """Each of them known when it is set: a misspelt one would silently mean nothing."""
    try:
        good = isinstance(chats, tuple | list) and all(destinations.parse(each).chat_id for each in chats)
    except (TypeError, errors.UnknownDestination):
        good = False
    if not good:
        raise errors.InvalidSetting(key="send_to", value=chats, allowed=CHATS)
