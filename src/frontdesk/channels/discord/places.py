"""Which chats there are: channels of servers, their threads, direct messages."""

from typing import Annotated, Any

import msgspec

Snowflake = Annotated[str, msgspec.Meta(pattern=r"\A[0-9]{1,20}\Z")]
"""An id of the platform; later ones are larger, whatever they are of."""
THREADS = (10, 11, 12)
PRIVATE = "@me"
MOST_PLACES = 100_000
EPOCH_MILLISECONDS = 1_420_070_400_000


class DiscordPlace(msgspec.Struct, frozen=True, kw_only=True):
    """A chat, as the platform tells of it."""

    id: Snowflake
    type: int = 0
    name: str | None = None
    parent_id: Snowflake | None = None
    guild_id: Snowflake | None = None
    last_message_id: Snowflake | None = None

    @property
    def is_thread(self) -> bool:
        return self.type in THREADS and self.guild_id is not None

    @property
    def key(self) -> str:
        """What the place is called among the cursors."""
        return f"{self.guild_id or PRIVATE}/{self.id}"


class GuildRole(msgspec.Struct, frozen=True, kw_only=True):
    id: Snowflake
    tags: dict[str, Any] = {}


class Guild(msgspec.Struct, frozen=True, kw_only=True):
    id: Snowflake
    unavailable: bool = False
    channels: list[DiscordPlace] = []
    threads: list[DiscordPlace] = []
    roles: list[GuildRole] = []


class Places:
    """What is known of chats; what is not is asked for."""

    def __init__(self) -> None:
        self._known: dict[str, DiscordPlace] = {}
        self._roles: dict[str, frozenset[str]] = {}

    def get(self, channel_id: str) -> DiscordPlace | None:
        return self._known.get(channel_id)

    def learn(self, place: DiscordPlace) -> DiscordPlace:
        if len(self._known) >= MOST_PLACES:
            self._known.clear()
        self._known[place.id] = place
        return place

    def forget(self, channel_id: str) -> None:
        self._known.pop(channel_id, None)

    def learn_guild(self, guild: Guild, me: str) -> list[DiscordPlace]:
        """The server's chats; and under which roles we are mentioned there."""
        found = [
            self.learn(msgspec.structs.replace(each, guild_id=guild.id))
            for each in (*guild.channels, *guild.threads)
        ]
        self._roles[guild.id] = frozenset(each.id for each in guild.roles if each.tags.get("bot_id") == me)
        return found

    def roles(self, guild_id: str | None) -> frozenset[str]:
        return self._roles.get(guild_id or "", frozenset())


def snowflake_at(seconds: float) -> int:
    """The first id of a time, in seconds since 1970."""
    return max(int(seconds * 1000) - EPOCH_MILLISECONDS, 0) << 22


def later(one: str, other: str) -> bool:
    """Whether an id was made after another."""
    return int(one) > int(other)
