"""What the agent must know about the platform it talks on."""

from collections.abc import Callable

from frontdesk.formats.quoting import quote_any
from frontdesk.model.contexts import SessionContext
from frontdesk.model.platforms import Platform
from frontdesk.model.sources import SessionSource

NO_APIS = (
    "You have no {name} APIs: you cannot search or read history, list channels or members, pin messages,"
    " or manage anything. Do not promise any of it."
)
SLACK = (
    NO_APIS.format(name="Slack") + " Blocks and attachments of the current message are given to you as text."
)
DISCORD_WITHOUT_TOOLS = NO_APIS.format(name="Discord")
DISCORD_WITH_TOOLS = "You have Discord tools. This chat is {ids}."
MATRIX_BOUNDARY = (
    "Boundary: only this room. Act and reply here; do not assume, reveal or touch anything that belongs"
    " to other rooms."
)
BLUEBUBBLES = (
    "Each block of text between blank lines is delivered as a message bubble of its own. Keep blocks short,"
    " and put a blank line only where a new bubble shall begin."
)
YUANBAO = (
    "A normal reply in a group goes to the whole group. To write a direct message to a person, use the"
    " tool yb_send_dm with their name or user id."
)


def platform_notes(context: SessionContext) -> str | None:
    """The notes for the platform that the message came from, if it has any."""
    note = _NOTES.get(context.source.platform)
    return note(context) if note else None


def _discord(context: SessionContext) -> str:
    if not context.platform_tools:
        return DISCORD_WITHOUT_TOOLS
    return DISCORD_WITH_TOOLS.format(ids=_listed(_discord_ids(context.source)))


def _discord_ids(source: SessionSource) -> dict[str, str | None]:
    guild = {"guild id": source.guild_id}
    if source.parent_chat_id and source.thread_id:
        return guild | {"parent channel id": source.parent_chat_id, "thread id": source.thread_id}
    return guild | {"channel id": source.chat_id}


def _matrix(context: SessionContext) -> str:
    source = context.source
    facts = {"room": source.chat_name, "room id": source.chat_id, "thread id": source.thread_id}
    return f"This chat is {_listed(facts)}. {MATRIX_BOUNDARY}"


def _listed(facts: dict[str, str | None]) -> str:
    """The facts that are known, quoted."""
    known = ((label, quote_any(value)) for label, value in facts.items())
    return ", ".join(f"{label} {value}" for label, value in known if value) or "not identified"


_NOTES: dict[Platform, Callable[[SessionContext], str]] = {
    Platform.SLACK: lambda _: SLACK,
    Platform.DISCORD: _discord,
    Platform.MATRIX: _matrix,
    Platform.BLUEBUBBLES: lambda _: BLUEBUBBLES,
    Platform.YUANBAO: lambda _: YUANBAO,
}
