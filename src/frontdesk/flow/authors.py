"""What somebody writes into a conversation from elsewhere, from the page or through the HTTP API: as whom it
counts, and how the people there see it."""

from msgspec.structs import replace

from frontdesk import errors
from frontdesk.contracts.channels import Incoming
from frontdesk.contracts.store import Admit
from frontdesk.flow.commands import Command
from frontdesk.flow.parts import Parts
from frontdesk.formats import quoting
from frontdesk.model import keys
from frontdesk.model.access import AccessRule, AccessVerdict, Role
from frontdesk.model.deliveries import Delivery, DeliveryKind
from frontdesk.model.platforms import READ_BY_PROGRAMS
from frontdesk.model.sources import SessionSource
from frontdesk.model.turns import Admission, Turn, TurnKind

FROM_THE_PAGE = "{name}, from the page: {text}"
MAX_NAME_CHARACTERS = 80
SHOWN = "-page"
"""What the ids of deliveries end with that show a message of the page to its chat."""


def verdict(incoming: Incoming) -> AccessVerdict:
    """They are in: whoever handed it in has checked them. What a command shows is read by the people of the
    chat, so that nobody is more than a user there, unless it shows nothing."""
    source, author = incoming.source, incoming.author
    role = Role.ADMINISTRATOR if author and author.administers else Role.USER
    return AccessVerdict(
        allowed=True, rule=AccessRule.CHANNEL_CREDENTIAL, place=keys.place_of(source), role=role
    )


def check_command(command: Command | None) -> None:
    """Refuse what would count as the word of somebody else: the chat's own person."""
    if command and command.is_personal:
        why = "it counts as the word of whoever gives it, and is given in their own chat or on its own page"
        raise errors.InvalidInput(what=f"/{command.name} from here", why=why)


async def check_about(parts: Parts, turn: Turn) -> None:
    """Refuse a command that was meant for another session than the one that goes on here by now. What an
    attempt before this one began is known to the command itself."""
    if turn.about is None or turn.author is None or turn.attempts > 1:
        return
    if await parts.conversations.peek_session_id(turn.session_key) != turn.about:
        raise errors.NotCurrent(session_id=turn.about)


def shown_before(parts: Parts, turn: Turn, command: Command | None, admit: Admit) -> Admit:
    """The same decision; with it, the people of the chat are shown what was written."""
    check_command(command)
    if command and turn.files and turn.kind is not TurnKind.MESSAGE:
        raise errors.InvalidInput(what=f"/{command.name} with files", why="a command takes none")
    said = shown(parts, turn)

    def admit_and_show(running: Turn | None, queued: int, crowd: int) -> Admission:
        admission = admit(running, queued, crowd)
        return replace(admission, notices=(*said, *admission.notices))

    return admit_and_show


def is_for_programs(source: SessionSource) -> bool:
    """Whether nobody reads what is said there but a program, which asked for something else."""
    return str(source.platform) in READ_BY_PROGRAMS


def shown(parts: Parts, turn: Turn) -> tuple[Delivery, ...]:
    source = turn.source
    if turn.author is None or parts.capabilities_of(source).on_page or is_for_programs(source):
        return ()
    name = quoting.clean_text(turn.author.name, MAX_NAME_CHARACTERS).replace("\n", " ")
    text = FROM_THE_PAGE.format(name=name, text=turn.text)
    return parts.answers(
        turn,
        text,
        kind=DeliveryKind.NOTICE,
        final=False,
        is_markdown=False,
        delivery_id=f"{turn.id}{SHOWN}",
        at=turn.received_at,
        files=[stored for each in turn.files if (stored := each.stored)],
    )
