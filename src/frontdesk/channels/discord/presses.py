"""What people press: stored, then answered within the few seconds that the platform waits."""

from typing import TYPE_CHECKING, Any

import msgspec

from frontdesk import errors
from frontdesk.channels import streams
from frontdesk.channels.discord import inbound, verdicts
from frontdesk.channels.discord.places import DiscordPlace
from frontdesk.contracts.channels import CommandHint, Desk, Incoming
from frontdesk.logs import get_logger

if TYPE_CHECKING:
    from collections.abc import Sequence

    from frontdesk.channels.discord.calls import RestCalls
    from frontdesk.channels.discord.reading import Reader

SAY, NOTHING = 4, 6
"""How an interaction is answered."""
FOR_ONE = 64
"""Only who called sees it."""
MOST_COMMANDS = 100
MOST_HELP_CHARACTERS = 100
MOST_ECHO_CHARACTERS = 200
TEXT_OPTION = {"type": 3, "name": "text", "description": "What follows the command", "required": False}

log = get_logger(__name__)


async def take(calls: "RestCalls", reader: "Reader", desk: Desk, raw: Any, account: str | None) -> None:
    """Store a press or a command. Where that cannot be done the platform says so, to whom it concerns."""
    try:
        done = inbound.read_as(inbound.Interaction, raw)
        place = await _place(reader, done)
        happening = inbound.interaction(done, place, reader.me_in(place))
        if happening is not None:
            await streams.hand_over(desk, happening)
    except errors.InvalidInput as error:
        log.warning("update_unreadable", account=account, why=error)
        return
    except streams.LATER as error:
        log.warning("update_not_stored", account=account, why=error)
        return
    answer: dict[str, Any] = {"type": NOTHING}
    if isinstance(happening, Incoming):
        said = f"`{happening.text[:MOST_ECHO_CHARACTERS].replace('`', ' ')}`"
        data = {"content": said, "flags": FOR_ONE, "allowed_mentions": {"parse": []}}
        answer = {"type": SAY, "data": data}
    try:
        await calls.ask("POST", f"/interactions/{done.id}/{done.token}/callback", answer)
    except (verdicts.RestFailure, errors.MissingSecret) as error:
        log.info("press_not_acknowledged", account=account, why=str(error))


async def _place(reader: "Reader", done: inbound.Interaction) -> DiscordPlace:
    """An interaction brings along where it was."""
    if done.channel_id is None:
        raise errors.InvalidInput(what="The interaction", why="it has no channel")
    told = done.channel | {"id": done.channel_id, "guild_id": done.guild_id}
    if done.guild_id is None or not isinstance(told.get("type"), int):
        return await reader.place(done.channel_id, done.guild_id)
    return inbound.read_as(DiscordPlace, told)


async def offer(calls: "RestCalls", application_id: str, hints: "Sequence[CommandHint]") -> None:
    """Have the platform list our commands. It counts how often that is changed, so it is looked at first."""
    wanted = [_command(each) for each in hints[:MOST_COMMANDS]]
    there = await calls.ask("GET", f"/applications/{application_id}/commands")
    if isinstance(there, list) and _outline(there) == _outline(wanted):
        return
    await calls.ask("PUT", f"/applications/{application_id}/commands", wanted)


def _command(hint: CommandHint) -> dict[str, Any]:
    made = {"name": hint.name, "type": 1, "description": hint.help[:MOST_HELP_CHARACTERS]}
    return made | {"options": [TEXT_OPTION] if hint.usage else []}


def _outline(commands: list[Any]) -> set[tuple[str, str, bool]]:
    told = [each for each in commands if isinstance(each, dict)]
    return {(str(each.get("name")), str(each.get("description")), bool(each.get("options"))) for each in told}


class ReadyFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Of a line that begins: which application the bot belongs to."""

    application: inbound.MessageName
