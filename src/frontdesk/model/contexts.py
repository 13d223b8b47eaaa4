"""What an agent is told about the conversation it works in."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec
from msgspec.structs import replace

from frontdesk.model.gateway import GatewayConfig
from frontdesk.model.platforms import HomeChannel, Platform
from frontdesk.model.sessions import SessionEntry
from frontdesk.model.sources import SessionSource


class SessionContext(msgspec.Struct, frozen=True, kw_only=True):
    """Where a session takes place and where output can go, with the real ids that routing needs.

    ``platform_tools``, ``schedules``, ``sends_to`` and ``home`` serve the prompt alone; they are not part of
    the dict form.
    """

    source: SessionSource
    connected_platforms: tuple[Platform, ...] = ()
    home_channels: Mapping[Platform, HomeChannel] = msgspec.field(default_factory=dict)
    """Of connected platforms."""
    shared_multi_user_session: bool = False
    session_key: str = ""
    session_id: str = ""
    created_at: datetime | None = None
    updated_at: datetime | None = None
    platform_tools: bool = False
    """Whether the agent has the tools of the source's platform."""
    schedules: bool = True
    """Whether there is somebody who delivers scheduled output."""
    sends_to: tuple[str, ...] | None = None
    """The chats, and the platforms for their home channels, that the agent may send to besides this one; None
    where it cannot."""
    home: str = GatewayConfig().home
    """The folder frontdesk keeps its files in."""

    def in_session(self, entry: SessionEntry) -> "SessionContext":
        return replace(
            self,
            session_key=entry.session_key,
            session_id=entry.session_id,
            created_at=entry.created_at,
            updated_at=entry.updated_at,
        )

    def to_dict(self) -> dict[str, Any]:
        channels = self.home_channels.items()
        return {
            "source": self.source.to_dict(),
            "connected_platforms": [str(platform) for platform in self.connected_platforms],
            "home_channels": {str(platform): channel.to_dict() for platform, channel in channels},
            "shared_multi_user_session": self.shared_multi_user_session,
            "session_key": self.session_key,
            "session_id": self.session_id,
            "created_at": self.created_at and self.created_at.isoformat(),
            "updated_at": self.updated_at and self.updated_at.isoformat(),
        }
