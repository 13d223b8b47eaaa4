"""A request's card with what is known besides its bytes: whose it is, and what was approved before."""

from collections.abc import Iterator

from frontdesk.formats import actions, canonical, cards, comparisons, folding, masking, quoting
from frontdesk.formats.cards import Card, Known, Oddity, counted
from frontdesk.formats.comparisons import ComparedLine
from frontdesk.model.confirmations import Confirmation
from frontdesk.model.precedents import Precedent

PERSON_CHARACTERS = 60
PLACE_CHARACTERS = 60
FIRST = "First time for {whom}: nothing of this kind is known to have been approved before."
NOT_COMPARED = "What was approved last of this kind is too long to compare with, or was erased."
DIFFERENT = "Other than the last approval of this kind in {places}."


def card_of(
    asked: Confirmation, *, reveal: bool = False, wide: bool = False, all_words: bool = False
) -> Card | None:
    """The card of a request; None when what it was about was erased, or never kept."""
    if asked.payload is None:
        return None
    return cards.make(
        asked.payload,
        asked.description,
        asked.requester,
        reveal=reveal,
        wide=wide,
        all_words=all_words,
        known=known_of(asked, wide=wide),
    )


def known_of(asked: Confirmation, *, wide: bool = False) -> Known:
    """What is known of a request besides its bytes."""
    precedent = asked.precedent
    if precedent is None:
        return Known(person=person_of(asked))
    unusual = [*_first(precedent)]
    comparison: tuple[ComparedLine, ...] = ()
    if precedent.payload and asked.payload and precedent.payload != asked.payload:
        different, comparison = _compared(precedent.payload, asked.payload, wide=wide)
        unusual.append(different)
    elif precedent.payload is None and not precedent.is_first_for_requester:
        unusual.append(Oddity(sign=cards.DIFFERS, text=NOT_COMPARED, label="not compared"))
    return Known(unusual=tuple(unusual), comparison=comparison, person=person_of(asked))


def person_of(asked: Confirmation, most: int = PERSON_CHARACTERS) -> str | None:
    """Whose message led to it. What a person calls themselves is quoted; who they are, as the platform says,
    is not."""
    if not asked.on_behalf_of:
        return None
    known = quoting.shown_id(asked.on_behalf_of, most)
    name = asked.on_behalf_name
    return f"{quoting.quote_name(name, most)} ({known})" if name else known


def _first(precedent: Precedent) -> Iterator[Oddity]:
    agent, target = precedent.is_first_for_requester, precedent.is_first_for_target
    if agent or target:
        whom = " and for ".join(("this agent",) * agent + ("this target",) * target)
        yield Oddity(sign=cards.ODD, text=FIRST.format(whom=whom), label="first time")


def _compared(before: bytes, after: bytes, *, wide: bool) -> tuple[Oddity, tuple[ComparedLine, ...]]:
    """What differs between two actions as they are shown, with everything hidden in both."""
    read = [canonical.read_action(each) for each in (before, after)]
    (name, old), (other_name, new) = read
    found = [*("the name",) * (name != other_name), *comparisons.places(old, new)]
    left = len(found) - cards.MOST_PLACES
    more = [counted(left, "more place")] if left > 0 else []
    places = [quoting.one_line(place, PLACE_CHARACTERS) for place in found[: cards.MOST_PLACES]]
    text = DIFFERENT.format(places=", ".join((*places, *more)))
    lines = (_lines(*each, wide=wide) for each in read)
    return Oddity(sign=cards.DIFFERS, text=text, label="other than the last"), comparisons.compare(*lines)


def _lines(action: str, details: dict[str, object], *, wide: bool) -> list[str]:
    """The action line by line; a command in one."""
    covered = masking.covered(details, wide=wide)
    command = cards.command_in(covered)
    shown = covered if command is None else {name: covered[name] for name in covered if name != cards.ARGV}
    lines = folding.fold(actions.lines_of({"details": shown}))
    return [f"{cards.ACTION}: {actions.spelled(action)}", *filter(None, [command]), *map(str, lines)]
