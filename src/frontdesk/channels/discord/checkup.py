"""What can be found out about a bot: who it is, whether it may read, where it was let in."""

from typing import TYPE_CHECKING, Any

from frontdesk import errors
from frontdesk.channels.discord import outbound, verdicts
from frontdesk.channels.discord.verdicts import RestFailure, RestRefused
from frontdesk.model import findings
from frontdesk.model.findings import Finding

if TYPE_CHECKING:
    from frontdesk.channels.discord.calls import RestCalls

CONTENT_FLAGS = (1 << 18) | (1 << 19)
"""Whether texts of messages are given to it: to a large bot, or to a small one."""
RIGHTS = {"react": 6, "see channels": 10, "write": 11, "files": 15, "history": 16, "write in threads": 38}
PERMISSIONS = sum(1 << place for place in RIGHTS.values())
NAME_CHARACTERS = 100
NO_CONTENT = (
    "it may not read what people write: in the Developer Portal, under Bot, Privileged Gateway Intents,"
    " turn on Message Content Intent"
)
NOWHERE = "it is on no server. To add it to one of yours, open {url}"
FOREIGN = (
    "the application has an Interactions Endpoint URL, so presses go there and not to frontdesk: take it away"
    " in the Developer Portal, under General Information"
)
UNKNOWN_HOME = "the home channel {home} is not known to it: add it to that server, and let it see the channel"


async def examine(calls: "RestCalls", home: str | None) -> list[Finding]:
    try:
        me = await _asked(calls, "/users/@me")
        found = [Finding(text=f"{str(me.get('username'))[:NAME_CHARACTERS]} (id {me.get('id')})")]
        application = await _asked(calls, "/applications/@me")
        flags = application.get("flags")
        if not isinstance(flags, int) or not flags & CONTENT_FLAGS:
            found.append(findings.failed(NO_CONTENT))
        if application.get("interactions_endpoint_url"):
            found.append(findings.failed(FOREIGN))
        servers = await calls.ask("GET", "/users/@me/guilds", query={"limit": "1"})
        if not servers:
            found.append(findings.note(NOWHERE.format(url=invitation(str(application.get("id"))))))
        if home is not None:
            found += await _home(calls, home)
    except RestFailure as error:
        return [findings.failed(verdicts.why_troubled(error))]
    except errors.MissingSecret as error:
        return [findings.failed(str(error))]
    return found


def invitation(application_id: str) -> str:
    asked = f"client_id={application_id}&scope=bot+applications.commands&permissions={PERMISSIONS}"
    return f"https://discord.com/oauth2/authorize?{asked}"


async def _asked(calls: "RestCalls", path: str) -> dict[str, Any]:
    told = await calls.ask("GET", path)
    return told if isinstance(told, dict) else {}


async def _home(calls: "RestCalls", home: str) -> list[Finding]:
    unknown = [findings.failed(UNKNOWN_HOME.format(home=home))]
    if not outbound.is_id(home):
        return unknown
    try:
        await calls.ask("GET", f"/channels/{home}")
    except RestRefused as error:
        if not error.is_for_good:
            raise
        return unknown
    return []
