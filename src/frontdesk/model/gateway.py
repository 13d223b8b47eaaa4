"""The configuration the session layer works with."""

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any

import msgspec
from msgspec.structs import force_setattr, replace

from frontdesk import errors
from frontdesk.model import inputs, keys, routing
from frontdesk.model.access import Access
from frontdesk.model.listening import Listening
from frontdesk.model.platforms import HomeChannel, Platform, PlatformConfig
from frontdesk.model.policies import SessionResetPolicy
from frontdesk.model.routing import Directions, Profile, Routes, RoutingRow
from frontdesk.model.sources import ChatType, SessionSource

MAX_FRESHNESS_SECONDS = 10 * 366 * 24 * 3600
NOBODY = Access()
"""Lets nobody in."""
USUAL = Listening()
TABLES = {
    "platforms": PlatformConfig,
    "access": Access,
    "listening": Listening,
    "reset_by_type": SessionResetPolicy,
    "reset_by_platform": SessionResetPolicy,
    "reset_by_chat": SessionResetPolicy,
    "instructions": str,
    "profiles": Profile,
}
CHATS = ("reset_by_chat", "instructions")
"""Those with a row for each of some chats."""


class GatewayConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that decides how messages map to sessions; ``GatewayConfig()`` alone is valid."""

    platforms: Mapping[str, PlatformConfig] = msgspec.field(default_factory=dict)
    access: Mapping[str, Access] = msgspec.field(default_factory=dict)
    """Who may use each platform, or one account of ours on it, by ``platform@account``; nobody, where it is
    not said."""
    listening: Mapping[str, Listening] = msgspec.field(default_factory=dict)
    """Which messages of groups are answered, and what is gathered: by platform, or ``platform@account``."""
    default_reset_policy: SessionResetPolicy = msgspec.field(default_factory=SessionResetPolicy)
    reset_by_type: Mapping[str, SessionResetPolicy] = msgspec.field(default_factory=dict)
    reset_by_platform: Mapping[str, SessionResetPolicy] = msgspec.field(default_factory=dict)
    reset_by_chat: Mapping[str, SessionResetPolicy] = msgspec.field(default_factory=dict)
    """Policies for single chats, by ``platform:chat_id``."""
    instructions: Mapping[str, str] = msgspec.field(default_factory=dict)
    """What the agent is told in single chats, by ``platform:chat_id``, and in topics of them, by
    ``platform:chat_id:thread_id``."""
    group_sessions_per_user: bool = True
    thread_sessions_per_user: bool = False
    multiplex_profiles: bool = False
    active_profile: str | None = None
    """The profile that messages without one of their own belong to."""
    profiles: Mapping[str, Profile] = msgspec.field(default_factory=dict)
    routes: tuple[RoutingRow, ...] = ()
    auto_continue_freshness_seconds: int = 3600
    home: str = "~/.frontdesk"
    """The folder frontdesk keeps its files in."""

    def __post_init__(self) -> None:
        _check_kind("default_reset_policy", self.default_reset_policy, SessionResetPolicy)
        for name, kind in TABLES.items():
            _check_table(name, getattr(self, name), kind)
        for name in self.reset_by_type:
            if name not in tuple(ChatType):
                allowed = f"the names {', '.join(ChatType)}"
                raise errors.InvalidSetting(key="reset_by_type", value=name, allowed=allowed)
        self._check_profiles()
        inputs.check_flags(self, "group_sessions_per_user", "thread_sessions_per_user", "multiplex_profiles")
        seconds = self.auto_continue_freshness_seconds
        number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
        if not (number and seconds <= MAX_FRESHNESS_SECONDS):
            raise errors.InvalidSetting(
                key="auto_continue_freshness_seconds",
                value=seconds,
                allowed=f"a number up to {MAX_FRESHNESS_SECONDS}; 0 turns it off",
            )

    def _check_profiles(self) -> None:
        for row in self.routes:
            _check_kind("routes", row, RoutingRow)
        if self.routes:
            force_setattr(self, "routes", Routes(self.routes))
        routing.check_table(self.routes, self.profiles)
        if not self.profiles:
            return
        if not self.multiplex_profiles:  # two agents would go on in one conversation
            allowed = "true, since there are profiles"
            raise errors.InvalidSetting(key="multiplex_profiles", value=False, allowed=allowed)
        self.check_profile(self.active_profile)

    def check_profile(self, profile: str | None) -> None:
        """Refuse a profile that nobody set up."""
        name = routing.named(profile)
        if name and name not in self.profiles and (self.profiles or name != self.active_profile):
            known = ", ".join([routing.DEFAULT, *self.profiles])
            raise errors.UnknownProfile(name=name, known=known)

    def directions(self, source: SessionSource) -> Directions:
        """What the routes say of the place of a message."""
        return routing.direct(source, self.routes) if isinstance(self.routes, Routes) else routing.NOWHERE

    def profile_of(self, source: SessionSource) -> tuple[str | None, str]:
        """The profile of a message, and why: the one that it names, the one that its place is routed to, the
        one that its account belongs to, or the active one."""
        if source.profile:
            return source.profile, "named by the message"
        if (directions := self.directions(source)).profile:
            return directions.profile, directions.rows["profile"]
        place = keys.place_of(source) if self.profiles else ""
        for name, profile in self.profiles.items():
            if place in profile.accounts:
                return name, f"the account {place}"
        return self.active_profile, "active_profile" if self.active_profile else "no other"

    def profile_of_account(self, platform: str, account: str | None) -> str:
        """The profile of what comes to an account of ours, unless its place is routed elsewhere."""
        if not self.profiles:
            return routing.DEFAULT
        place = SessionSource(platform=Platform(platform), account=account)
        return routing.named(self.profile_of(place)[0]) or routing.DEFAULT

    def profile_at(self, source: SessionSource) -> Profile:
        """What the profile of a message sets."""
        name = self.profile_of(source)[0] if self.profiles else None
        return self.profiles.get(name or "") or routing.PLAIN

    def policy_at(self, source: SessionSource) -> SessionResetPolicy:
        """The policy that holds where a message came from."""
        policy = self.profile_at(source).reset_policy
        if policy is None or f"{source.platform}:{source.chat_id}" in self.reset_by_chat:
            policy = self.get_reset_policy(source.platform, source.chat_type, source.chat_id)
        return self.directions(source).limited(policy) if self.routes else policy

    def get_reset_policy(
        self, platform: str | None = None, session_type: str | None = None, chat_id: str | None = None
    ) -> SessionResetPolicy:
        """The most specific policy: the chat's, the platform's, the chat type's, or the default."""
        return (
            self.reset_by_chat.get(f"{platform}:{chat_id}")
            or self.reset_by_platform.get(platform or "")
            or self.reset_by_type.get(session_type or "")
            or self.default_reset_policy
        )

    def get_instructions(self, source: SessionSource) -> str | None:
        """What is bound to the place of a message: to the chat that its thread hangs on, to its chat, to its
        topic, in this order."""
        chats = (
            source.parent_chat_id,
            source.chat_id,
            source.thread_id and f"{source.chat_id}:{source.thread_id}",
        )
        names = dict.fromkeys(f"{source.platform}:{chat}" for chat in chats if chat)
        texts = [self.instructions[name] for name in names if name in self.instructions]
        return "\n\n".join(filter(None, (*texts, self.directions(source).prompt))) or None

    def get_access(self, platform: str, account: str | None = None) -> Access:
        """Who may use the platform through one of our accounts."""
        own = self.access.get(keys.account_place(platform, account)) if account else None
        return own or self.access.get(platform) or NOBODY

    def get_listening(self, platform: str, account: str | None = None) -> Listening:
        """Which messages of the platform's groups are answered, and what is gathered."""
        own = self.listening.get(keys.account_place(platform, account)) if account else None
        return own or self.listening.get(platform) or USUAL

    def get_connected_platforms(self) -> list[Platform]:
        """The enabled platforms, in the order they were configured."""
        enabled = (name for name, platform in self.platforms.items() if platform.enabled)
        return [platform for platform in map(Platform.parse, enabled) if platform]

    def connected_to(self, names: Iterable[str]) -> "GatewayConfig":
        """The same configuration where these platforms are connected, and no others."""
        found = {name: self.platforms.get(name) or PlatformConfig() for name in names}
        connected = {name: replace(platform, enabled=True) for name, platform in found.items()}
        return replace(self, platforms=connected)

    def get_home_channel(self, platform: str) -> HomeChannel | None:
        configured = self.platforms.get(platform)
        return configured.home_channel if configured else None

    @property
    def freshness(self) -> timedelta | None:
        """How long an interrupted session waits to be continued; None for ever."""
        seconds = self.auto_continue_freshness_seconds
        return timedelta(seconds=seconds) if seconds > 0 else None

    def to_dict(self) -> dict[str, Any]:
        data = msgspec.to_builtins(self, enc_hook=str)  # a platform is written as its name
        assert isinstance(data, dict)
        return data


def _check_kind(key: str, value: object, kind: type) -> None:
    if not isinstance(value, kind):
        raise errors.InvalidSetting(key=key, value=value, allowed=f"a {kind.__name__}")


def _check_table(key: str, table: object, kind: type) -> None:
    """Any text may be a name: a plug-in may register its platform later."""
    if not isinstance(table, Mapping):
        raise errors.InvalidSetting(key=key, value=table, allowed=f"a mapping of names to {kind.__name__}")
    for name, value in table.items():
        if not isinstance(name, str):
            raise errors.InvalidSetting(key=key, value=name, allowed="names that are texts")
        _check_kind(f"{key}.{name}", value, kind)
        platform, _, chat_id = name.partition(":")
        if key in CHATS and not (platform and chat_id):
            raise errors.InvalidSetting(key=key, value=name, allowed="names of the form platform:chat_id")
