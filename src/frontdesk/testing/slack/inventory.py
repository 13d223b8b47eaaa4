"""Who and what there is in the workspace that the stand-in plays: conversations, messages, troubles."""

import asyncio
from typing import Any

import msgspec


class TeamChat(msgspec.Struct, kw_only=True):
    id: str
    kind: str = "channel"
    """channel, group (private), mpim or im."""
    name: str = "general"
    user: str | None = None
    """Whom we talk to, in a direct one."""
    is_member: bool = True
    is_archived: bool = False
    waits_until: float = 0.0
    """Until when the platform said that nothing is to come."""

    def told(self) -> dict[str, Any]:
        told = {"id": self.id, "name": self.name, "is_member": self.is_member}
        told |= {"is_im": self.kind == "im", "is_mpim": self.kind == "mpim", "is_archived": self.is_archived}
        return told | ({"user": self.user} if self.user else {})


class TeamFile(msgspec.Struct, kw_only=True):
    id: str
    name: str
    kind: str = "application/octet-stream"
    data: bytes = b""
    is_shared: bool = False


class TeamPost(msgspec.Struct, kw_only=True):
    """A message that the app sent, as people see it now."""

    channel: str
    ts: str
    text: str
    blocks: list[dict[str, Any]] = []
    thread_ts: str | None = None
    metadata: dict[str, Any] | None = None
    files: tuple[TeamFile, ...] = ()
    edits: int = 0
    streams: bool = False
    """It is a stream that nobody has ended."""
    is_stopped: bool = False
    """Whoever reads it has stopped it."""
    response_url: str | None = None
    """Where it came in, if that is the address of a command: whoever gave that sees it, and nobody else."""

    @property
    def shown(self) -> str:
        """The text as people read it."""
        if not self.blocks:
            return _unescaped(self.text)
        return "".join(_shown(block) for block in self.blocks)

    @property
    def buttons(self) -> tuple[tuple[str, str], ...]:
        elements = (each for block in self.blocks if block["type"] == "actions" for each in block["elements"])
        return tuple((each["text"]["text"], each["value"]) for each in elements)


class TeamCall(msgspec.Struct, frozen=True, kw_only=True):
    """A call, as it came."""

    method: str
    fields: dict[str, Any]
    token: str


class TeamFault(msgspec.Struct, kw_only=True):
    """What goes wrong with a call."""

    method: str | None = None
    """Which call; any, when none is named."""
    taken: bool = False
    """Whether it is carried out before that."""
    status: int | None = None
    error: str | None = None
    """What is said instead of the result, with status 200 unless another is named."""
    retry_after: int | None = None
    body: bytes | None = None
    """What is answered instead, as if all were well."""
    cut: bool = False
    hangs: bool = False
    times: int | None = 1
    """How often; None: from now on."""


class Envelope(msgspec.Struct, kw_only=True):
    """What was brought to the app."""

    id: str
    kind: str
    payload: dict[str, Any]
    acknowledged: asyncio.Event = msgspec.field(default_factory=asyncio.Event)


class TeamRefusal(Exception):
    """The platform says no."""

    def __init__(self, code: str, status: int = 200, retry_after: int | None = None) -> None:
        super().__init__(code)
        self.code = code
        self.status = status
        self.retry_after = retry_after


def _shown(block: dict[str, Any]) -> str:
    if block["type"] == "section":
        return _unescaped(block["text"]["text"])
    if block["type"] != "rich_text":
        return ""
    return "".join(part["text"] for section in block["elements"] for part in section["elements"])


def _unescaped(text: str) -> str:
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
