"""The command that chooses a model for the conversation."""

import re

from frontdesk import errors
from frontdesk.flow.commands import Command, CommandReply, CommandRequest, views
from frontdesk.flow.parts import Parts

DEFAULT = "default"
CANNOT = "The agent here cannot be given another model; nothing was changed."
MODEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,99}")


async def model(parts: Parts, request: CommandRequest) -> CommandReply:
    wanted = views.argument_of(request)
    if not wanted:
        return CommandReply(await _shown(parts, request))
    override = None if wanted.lower() == DEFAULT else {"model": _checked(wanted)}
    if override and not parts.agent.abilities.models:
        return CommandReply(CANNOT, refused=True)
    # The choice belongs to the session that the next message goes to.
    await parts.conversations.get_or_create_session(request.turn.source)
    await parts.conversations.set_model_override(request.key, override)
    if override is None:
        return CommandReply("This conversation uses the default model again.")
    name = views.quoted(override["model"])
    return CommandReply(f"This conversation uses the model {name} from now on. To go back: /model default")


async def _shown(parts: Parts, request: CommandRequest) -> str:
    session = await views.own_session(parts, request)
    override = session.entry.model_override if session else None
    chosen = override.get("model") if override else None
    name = views.quoted(chosen) if chosen else "the default model"
    if not parts.agent.abilities.models:
        return "This conversation uses the agent's own model, and no other can be chosen."
    return f"This conversation uses {name}. To choose another: /model NAME"


def _checked(name: str) -> str:
    if not MODEL.fullmatch(name):
        raise errors.InvalidInput(what=f"Model {views.quoted(name)}", why="a model's name is one word")
    return name


COMMANDS = (
    Command(
        name="model",
        usage="[name or default]",
        handle=model,
        help="Show or choose the model of this conversation.",
    ),
)
