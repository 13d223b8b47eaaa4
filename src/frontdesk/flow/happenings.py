"""What people do in a chat besides writing: they change and delete messages, react to them, press buttons.

One that still waits is changed, or withdrawn. Of a later change, and of reactions, the agent gets a note.
"""

from msgspec.structs import replace

from frontdesk.contracts.channels import Deleted, Edited, Reacted
from frontdesk.flow.commands import registry
from frontdesk.flow.parts import Parts
from frontdesk.formats import quoting
from frontdesk.model.buttons import plain_sign
from frontdesk.model.deliveries import Delivery
from frontdesk.model.sources import SessionSource
from frontdesk.model.turns import Alteration, Turn, TurnKind

MAX_EDIT_CHARACTERS = 2_000
MAX_NAMED_CHARACTERS = 120
"""Of a message that a note is about."""
MAX_SIGN_CHARACTERS = 40
MESSAGES = frozenset({TurnKind.MESSAGE, TurnKind.OBSERVED})
DELETED = "(deleted)"
NOTHING = Alteration()


def change(
    parts: Parts,
    happening: Edited | Deleted | Reacted,
    event: Turn,
    subject: Turn | None,
    delivery: Delivery | None,
    waits: bool,
) -> Alteration:
    """What becomes of it, given what the message became. It is decided in the transaction that stores it."""
    if isinstance(happening, Reacted):
        return _reaction(parts, happening, event, subject, delivery)
    if subject is None or subject.kind not in MESSAGES:
        return NOTHING
    if isinstance(happening, Deleted):
        if waits:
            return Alteration(amended=replace(subject, text=DELETED, files=(), quote=None, withdrawn=True))
        return _note(parts, event, subject, f"deleted {_named(subject.text)}")
    text = _meant(happening.text)
    theirs = happening.source.participant == subject.source.participant
    if not theirs or subject.content is not None or text == subject.text or subject.withdrawn:
        return NOTHING
    if not text.strip() and not subject.files:
        return NOTHING
    if waits:
        return Alteration(amended=replace(subject, text=text))
    told = quoting.quote_within(text, MAX_EDIT_CHARACTERS)
    return _note(parts, event, subject, f"changed {_named(subject.text)} to {told}")


def _meant(text: str) -> str:
    """What a command that takes a message in says to the agent; any other text as it is."""
    found = registry.parse(text) if text.lstrip().startswith("/") else None
    return found[1] if found and found[0].takes_in and found[1] else text


def _reaction(
    parts: Parts, reacted: Reacted, event: Turn, subject: Turn | None, delivery: Delivery | None
) -> Alteration:
    if delivery and not reacted.removed and not reacted.source.is_bot:
        wanted = plain_sign(reacted.emoji)
        pressed = [each for each in delivery.buttons if each.sign and plain_sign(each.sign) == wanted]
        if pressed:
            return Alteration(kept=replace(event, kind=TurnKind.PRESS, token=pressed[0].token))
    about = subject if subject and subject.kind in MESSAGES else delivery
    if about is None or about.session_key is None:
        return NOTHING
    sign = quoting.quote_within(reacted.emoji, MAX_SIGN_CHARACTERS)
    did = f"took back {sign} from" if reacted.removed else f"reacted with {sign} to"
    return _note(
        parts, event, about, f"{did} {'your answer ' if about is delivery else ''}{_named(about.text)}"
    )


def _named(text: str) -> str:
    return quoting.quote_within(text, MAX_NAMED_CHARACTERS)


def _note(parts: Parts, event: Turn, about: Turn | Delivery, did: str) -> Alteration:
    """What the agent is told, in the conversation that the message is in."""
    sender = about.source if isinstance(about, Turn) else about.to
    named = event.source.participant != sender.participant and not parts.conversations.is_shared(sender)
    text = f"({_name(event.source)} {did})" if named else f"({did})"
    source = replace(sender, message_id=None, user_id=event.source.user_id, user_name=event.source.user_name)
    source = replace(source, user_id_alt=event.source.user_id_alt)
    assert about.session_key is not None, "what has no conversation gets no note"
    return Alteration(kept=replace(event, source=source, session_key=about.session_key, text=text))


def _name(source: SessionSource) -> str:
    name = quoting.one_line(source.user_name or source.user_id or "", MAX_SIGN_CHARACTERS)
    return name.replace("(", "[").replace(")", "]") or "somebody"
