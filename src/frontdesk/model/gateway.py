"""The configuration the session layer works with."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import msgspec

from frontdesk import errors
from frontdesk.model.platforms import HomeChannel, Platform, PlatformConfig
from frontdesk.model.policies import SessionResetPolicy

MAX_FRESHNESS_SECONDS = 10 * 366 * 24 * 3600


class GatewayConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that decides how messages map to sessions; ``GatewayConfig()`` alone is valid."""

    platforms: Mapping[str, PlatformConfig] = msgspec.field(default_factory=dict)
    default_reset_policy: SessionResetPolicy = msgspec.field(default_factory=SessionResetPolicy)
    reset_by_type: Mapping[str, SessionResetPolicy] = msgspec.field(default_factory=dict)
    reset_by_platform: Mapping[str, SessionResetPolicy] = msgspec.field(default_factory=dict)
    reset_by_chat: Mapping[str, SessionResetPolicy] = msgspec.field(default_factory=dict)
    """Policies for single chats, by ``platform:chat_id``."""
    group_sessions_per_user: bool = True
    thread_sessions_per_user: bool = False
    multiplex_profiles: bool = False
    active_profile: str | None = None
    """The profile that messages without one of their own belong to."""
    auto_continue_freshness_seconds: int = 3600
    home: str = "~/.frontdesk"
    """The folder frontdesk keeps its files in."""

    def __post_init__(self) -> None:
        for name in ("group_sessions_per_user", "thread_sessions_per_user", "multiplex_profiles"):
            if not isinstance(getattr(self, name), bool):
                raise errors.InvalidSetting(key=name, value=getattr(self, name), allowed="true or false")
        seconds = self.auto_continue_freshness_seconds
        number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
        if not (number and seconds <= MAX_FRESHNESS_SECONDS):
            raise errors.InvalidSetting(
                key="auto_continue_freshness_seconds",
                value=seconds,
                allowed=f"a number up to {MAX_FRESHNESS_SECONDS}; 0 turns it off",
            )

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

    def get_connected_platforms(self) -> list[Platform]:
        """The enabled platforms, in the order they were configured."""
        enabled = (name for name, platform in self.platforms.items() if platform.enabled)
        return [platform for platform in map(Platform.parse, enabled) if platform]

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
