"""Pressing: a button does what it was made for, once, for whoever may do that."""

import hashlib
from functools import partial

from msgspec.structs import replace

from frontdesk import errors
from frontdesk.flow.commands import Refusal
from frontdesk.flow.confirmations import deciding
from frontdesk.flow.parts import Parts
from frontdesk.formats import quoting
from frontdesk.model import deliveries, people
from frontdesk.model.access import Role
from frontdesk.model.buttons import Chooses, Decides, KeptButton, Press, chat_of
from frontdesk.model.confirmations import Status
from frontdesk.model.deliveries import Delivery, DeliveryState
from frontdesk.model.sources import SessionSource
from frontdesk.model.turns import Admission, Turn, TurnKind

OLD = "This button does nothing any more: it was used, its time is over, or it is not of this chat."
OFFERED_TO_OTHERS = "This was offered to somebody else. Write to me, and I answer you."
CHOSEN = "Chosen: {text}"
NAME_CHARACTERS = 60
TELL_SECONDS = 60
ID_DIGITS = 24
TOLD = (Status.PENDING, *deciding.DECIDED)
"""What whoever decides is told of."""


async def press(parts: Parts, turn: Turn) -> str:
    """Do what the button was made for. What whoever pressed is told; nothing, where they see it."""
    button = await parts.store.buttons.find(turn.token or "")
    if button is None or button.chat != chat_of(turn.source):
        return Refusal(OLD)
    try:
        if isinstance(button.does, Decides):
            return await _decide(parts, turn, button, button.does)
        return await _choose(parts, turn, button, button.does)
    except (errors.StoreError, errors.LeaseLost):
        raise
    except errors.FrontdeskError as refusal:
        return Refusal(refusal)


async def _decide(parts: Parts, turn: Turn, button: KeptButton, does: Decides) -> str:
    """The same as with words: the press is a vote of whoever pressed, about what they were shown."""
    role = Role(turn.role) if turn.role else None
    decides, about = "approve" if does.approves else "deny", does.confirmation_id
    try:
        caller = await deciding.caller_of(parts, turn.source, role, decides, about)
    except errors.NotAllowed:
        if button.sign is None:
            raise
        return Refusal()  # people react to messages without meaning anything by it
    asked = await parts.confirmations.find(about)
    if button.used_by != turn.id:  # else it was counted, and the attempt before broke off
        if asked.resolved_by == caller.id:
            return ""  # they pressed twice
        said = {"digest": does.digest, "press": Press(token=button.token, turn_id=turn.id)}
        if does.approves:
            await deciding.after_target(parts, turn.source, asked, "")
            asked = await parts.confirmations.approve(about, caller, **said)
        else:
            asked = await parts.confirmations.deny(about, caller, **said)
    if asked.status not in TOLD:
        return ""
    told = await deciding.told(parts, asked)
    is_seen = parts.capabilities_of(turn.source).edits and "\n" not in told
    return "" if is_seen else told


async def _choose(parts: Parts, turn: Turn, button: KeptButton, does: Chooses) -> str:
    """What was chosen is a message of whoever pressed, in the conversation that it was offered in."""
    offered = await parts.store.deliveries.find(button.delivery_id)
    if button.used_by == turn.id:
        return ""
    if offered is None or not button.is_open(parts.clock.now()):
        return Refusal(OLD)
    source = _chooser(turn.source, offered.to)
    key = await parts.conversations.route(source)
    if key != offered.session_key:
        return Refusal(OFFERED_TO_OTHERS)
    chosen = Turn(
        id=f"{turn.id}-chosen",
        kind=TurnKind.MESSAGE,
        session_key=key,
        source=source,
        party=turn.party,
        text=does.text,
        role=turn.role,
        handle=turn.handle,
        received_at=turn.received_at,
    )
    shown = _shown_choice(parts, turn, offered, does)
    admit = partial(_queue, parts.running.most_waiting)
    now = parts.clock.now()
    taken = await parts.store.buttons.choose(button.token, turn, chosen, admit, now, told=shown)
    return Refusal(OLD) if taken is None else ""


def _chooser(pressed: SessionSource, offered: SessionSource) -> SessionSource:
    """Who pressed, in the place where it was offered: not every platform says in which thread that was."""
    return replace(
        offered,
        user_id=pressed.user_id,
        user_name=pressed.user_name,
        user_id_alt=pressed.user_id_alt,
        message_id=None,
    )


def _queue(most: int, _: Turn | None, queued: int, __: int) -> Admission:
    if queued >= most:
        raise errors.TooManyWaiting(waiting=queued)
    return Admission()


def _shown_choice(parts: Parts, turn: Turn, offered: Delivery, does: Chooses) -> tuple[Delivery, ...]:
    """The message that offered it says what was chosen, where it can be changed."""
    capabilities = parts.capabilities_of(offered.to)
    if not capabilities.edits:
        return ()
    whole = "\n\n".join((offered.text, CHOSEN.format(text=does.text)))
    limit, unit = capabilities.text_limit, capabilities.text_unit
    text = whole if limit is None or unit.length(whole) <= limit else offered.text
    return (
        Delivery(
            id=f"{offered.id}-chosen",
            kind=offered.kind,
            state=DeliveryState.PENDING,
            lane=offered.lane,
            to=offered.to,
            text=text,
            is_markdown=offered.is_markdown,
            final=False,
            turn_id=turn.id,
            session_id=offered.session_id,
            session_key=offered.session_key,
            event_id=offered.event_id,
            extra={deliveries.REPLACES: offered.id},
            created_at=turn.received_at,
        ),
    )


def told_to(turn: Turn, text: str) -> str:
    """What whoever pressed is told, where others read, too: for whom it is. What they call themselves is
    quoted, and who they are stands beside it: a name may say that something was approved."""
    if not turn.source.others_read:
        return text
    name, known = turn.source.user_name, quoting.shown_id(people.name_of(turn.source, {}), NAME_CHARACTERS)
    return f"{quoting.quote_name(name, NAME_CHARACTERS)} ({known}): {text}" if name else f"{known}: {text}"


def notice_id(turn: Turn, done: str) -> str | None:
    """Whoever is refused the same again and again is told once in a minute."""
    if not isinstance(done, Refusal):
        return None
    spell = (
        chat_of(turn.source),
        turn.source.participant,
        turn.received_at.timestamp() // TELL_SECONDS,
        done,
    )
    known = hashlib.sha256(repr(spell).encode("utf-8", "backslashreplace")).hexdigest()
    return f"d_{known[:ID_DIGITS]}"
