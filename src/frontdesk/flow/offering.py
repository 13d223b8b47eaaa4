"""Choices that an agent offers: buttons where the chat has them, else numbers, which people put as reactions
or write."""

from collections.abc import Sequence
from datetime import timedelta

from msgspec.structs import replace

from frontdesk.contracts.channels import Capabilities, Incoming
from frontdesk.flow.parts import Parts
from frontdesk.model import buttons, events
from frontdesk.model.buttons import Chooses, LiveButton
from frontdesk.model.chats import StoredFile
from frontdesk.model.deliveries import Delivery
from frontdesk.model.turns import Turn

OPEN_FOR = timedelta(days=1)
"""How long an option can be chosen."""
CHOOSE = "Please choose:"
BY_NUMBER = "Answer with a number."
BY_SIGN = "React with a number, or write one."
MOST_DIGITS = 2


async def offer(
    parts: Parts, turn: Turn, text: str, choice: events.Choice, *, files: Sequence[StoredFile] = ()
) -> tuple[Delivery, ...]:
    """The answer with the choice at its end. Whoever follows the turn hears of it, too."""
    capabilities = parts.capabilities_of(turn.source)
    parts.live.tell(turn.id, events.Text(text=f"\n\n{choice.numbered}" if text else choice.numbered))
    whole = "\n\n".join(filter(None, (text, *_shown(choice, capabilities))))
    said = await parts.answers_beside(turn, whole, files)
    if capabilities.collects:
        return said
    end = max(place for place, each in enumerate(said) if each.text)
    pressed = _live(choice, capabilities, parts)
    return tuple(replace(each, buttons=pressed) if at == end else each for at, each in enumerate(said))


def _has_buttons(choice: events.Choice, capabilities: Capabilities) -> bool:
    return len(choice.options) <= capabilities.most_buttons


def _has_signs(choice: events.Choice, capabilities: Capabilities) -> bool:
    return capabilities.reactions and len(choice.options) <= buttons.MOST_SIGNS


def _shown(choice: events.Choice, capabilities: Capabilities) -> Sequence[str]:
    """What is written of it."""
    if _has_buttons(choice, capabilities):
        return [choice.text or CHOOSE]
    if capabilities.collects:
        return [choice.numbered]
    return [choice.numbered, BY_SIGN if _has_signs(choice, capabilities) else BY_NUMBER]


def _live(choice: events.Choice, capabilities: Capabilities, parts: Parts) -> tuple[LiveButton, ...]:
    signs = not _has_buttons(choice, capabilities)
    keycap = buttons.KEYCAP if _has_signs(choice, capabilities) else ""
    return tuple(
        LiveButton(
            label=option,
            token=buttons.new_token(),
            sign=f"{number}{keycap}" if signs else None,
            does=Chooses(text=option),
            until=parts.clock.now() + OPEN_FOR,
        )
        for number, option in enumerate(choice.options, 1)
    )


async def chosen_by(parts: Parts, incoming: Incoming, session_key: str) -> str | None:
    """The token of the option that a message chooses: a number alone, right after the choice, in the same
    conversation."""
    number = incoming.text.strip()
    is_number = number.isascii() and number.isdigit() and len(number) <= MOST_DIGITS
    if not is_number or incoming.content or incoming.files or incoming.observed:
        return None
    now = parts.clock.now()
    return await parts.store.buttons.by_number(incoming.source, session_key, number, now)
