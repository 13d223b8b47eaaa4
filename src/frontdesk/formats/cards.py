"""What people see of a request before they decide: one card, in the same words wherever it is shown.

A card is data. A page makes elements of it, a terminal and a chat the lines that are made here. Its parts
stand in one order: the agent's words, which nobody has checked, quoted and few; what is unusual; what is
hidden; the arguments; and last, right above the question, the action and its target, made from the bytes.
"""

import shlex
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import msgspec

from frontdesk import errors
from frontdesk.formats import (
    actions,
    canonical,
    dangers,
    folding,
    headlines,
    letters,
    masking,
    quoting,
    runnable,
    scripts,
    targets,
    wrapping,
)
from frontdesk.formats.comparisons import ComparedLine
from frontdesk.formats.folding import CardLine
from frontdesk.formats.headlines import HeadlinePart
from frontdesk.formats.targets import Typed
from frontdesk.model.confirmations import is_high_risk
from frontdesk.model.inspecting import unreadable_parts

MOST_WORD_LINES = 5
WORD_COLUMNS = 76
NAME_CHARACTERS = 240
MOST_MATTERS = 3
MATTER_CHARACTERS = 200
MOST_PLACES = 5
LONG_LINES, LONG_CHARACTERS = 40, 4_000
"""From so much on, as it is shown, it is long: its end is looked at before it is approved."""

ASKED_BY = "Asked by the agent: {requester}"
AGENTS_WORDS = "The agent's own words (nobody checked them):"
QUOTED = "> "
MORE_WORDS = "[{lines} more of these words: {where}]"
UNUSUAL = "What is unusual:"
ON_BEHALF = "On behalf of: {person}"
DONE = "What will be done:"
ACTION, COMMAND, PROGRAM = "Action", "Command", "Its program"
ARGV = runnable.ARGV
DIGEST = "Digest"
DANGER, ODD, DIFFERS = "▲", "!", "±"


class Oddity(msgspec.Struct, frozen=True, kw_only=True):
    """Something that is not as usual."""

    sign: str
    text: str
    label: str
    """The same in two or three words, for lists."""


class HiddenPlace(msgspec.Struct, frozen=True, kw_only=True):
    """Where something is hidden, and how long it is."""

    place: str
    characters: int

    def __str__(self) -> str:
        return f"{self.place} ({counted(self.characters, 'character')})"


class Matter(msgspec.Struct, frozen=True, kw_only=True):
    """What the action is, or what it is done to."""

    name: str
    shown: str


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a request besides its bytes."""

    unusual: tuple[Oddity, ...] = ()
    comparison: tuple[ComparedLine, ...] = ()
    person: str | None = None


class Card(msgspec.Struct, frozen=True, kw_only=True):
    requester: str
    """As the agent calls itself, in quotes."""
    person: str | None
    """Whose message led to it: what they are called, in quotes, and who that is."""
    words: tuple[str, ...]
    """The first lines of what the agent says."""
    more_words: tuple[str, ...]
    """The others: shown to whoever asks for them."""
    unusual: tuple[Oddity, ...]
    """The worst first."""
    hidden: tuple[HiddenPlace, ...]
    """What nobody approves before they have looked at it."""
    details: tuple[str, ...]
    """All arguments, line by line."""
    matters: tuple[Matter, ...]
    """The action, and what it is done to: the last thing before the question."""
    typed: Typed | None
    """What whoever approves types."""
    headline: tuple[HeadlinePart, ...]
    """What is done, in one short line: the command, or the action and the arguments that matter."""
    comparison: tuple[ComparedLine, ...]
    """What differs from what was approved last of this kind; empty when nothing does, or nothing was."""
    is_high_risk: bool
    """It is always asked: one of the ten, or nobody can read all of it."""

    @property
    def action(self) -> str:
        """In quotes."""
        return self.matters[0].shown

    @property
    def argument_names(self) -> tuple[str, ...]:
        """As they are shown, in their order."""
        entries = (line.removeprefix(actions.INDENT) for line in self.details[1:])
        return tuple(actions.name_in(line) for line in entries if not line.startswith(" "))

    @property
    def lines(self) -> tuple[CardLine, ...]:
        """The arguments, with lines that repeat folded."""
        return tuple(folding.fold(self.details))

    @property
    def is_long(self) -> bool:
        """Whether there is more of it than is seen at once."""
        lines = self.lines
        return len(lines) >= LONG_LINES or sum(len(line.text) for line in lines) >= LONG_CHARACTERS

    @property
    def note(self) -> str:
        """What is said of what is hidden; empty when nothing is."""
        if not self.hidden:
            return ""
        count = len(self.hidden)
        named = ", ".join(map(str, self.hidden[:MOST_PLACES]))
        more = f" and {count - MOST_PLACES} more" if count > MOST_PLACES else ""
        return f"{counted(count, 'value')} {'is' if count == 1 else 'are'} hidden: {named}{more}."

    def check_looked(self, confirmation_id: str, looked: bool, how: str) -> None:
        """NotLookedAt as long as something is hidden that whoever approves has not looked at."""
        if self.hidden and not looked:
            raise errors.NotLookedAt(confirmation_id=confirmation_id, how=how)

    def check_typed(self, confirmation_id: str, said: str | None, how: str = "") -> None:
        """TargetMissing unless the target was typed, where it has to be."""
        if self.typed and not self.typed.is_said(said):
            raise errors.TargetMissing(confirmation_id=confirmation_id, what=self.typed.what, how=how)

    def said(self, where: str | None = None) -> str:
        """Who asks, and what they say of it; the rest of that is where it is said to be."""
        parts = [ASKED_BY.format(requester=self.requester)]
        if self.person:
            parts.append(ON_BEHALF.format(person=self.person))
        if self.words:
            parts.append(self.words_said(where))
        return "\n".join(parts)

    def words_said(self, where: str | None = None) -> str:
        """The agent's words, as lines that pass for none of ours."""
        lines = [AGENTS_WORDS, *((QUOTED + line).rstrip() for line in self.words)]
        if self.more_words:
            count = counted(len(self.more_words), "line")
            lines.append(MORE_WORDS.format(lines=count, where=where or "not shown here"))
        return "\n".join(lines)

    def oddities(self, how: str = "") -> str:
        """What is unusual, with how to see what is hidden; empty when nothing is."""
        told = [f"{each.sign} {each.text}" for each in self.unusual if each.sign != DIFFERS]
        if self.note:
            told.append(" ".join(part for part in (ODD, self.note, how) if part))
        told += (f"{each.sign} {each.text}" for each in self.unusual if each.sign == DIFFERS)
        told += (actions.INDENT + str(line) for line in self.comparison)
        return "\n".join((UNUSUAL, *told)) if told else ""

    def arguments(self) -> str:
        return "\n".join((DONE, *map(str, self.lines)))

    @property
    def flags(self) -> tuple[str, ...]:
        """What is unusual or hidden, each in two or three words."""
        hidden = [f"{ODD} {len(self.hidden):,} hidden"] if self.hidden else []
        return (*(f"{each.sign} {each.label}" for each in self.unusual), *hidden)

    def closing(self) -> str:
        """The action and its target; where it is long, what is unusual once more, which is out of sight."""
        flags = ["  ".join(self.flags)] if self.is_long and self.flags else []
        return "\n".join((*flags, *(f"{each.name}: {each.shown}" for each in self.matters)))

    def text(self, *, where: str | None = None, how: str = "", columns: int | None = None) -> str:
        """All of it in lines, in their order; with columns, none is wider."""
        parts = (self.said(where), self.oddities(how), self.arguments(), self.closing())
        text = "\n\n".join(part for part in parts if part)
        return wrapping.hang(text, columns) if columns else text


def make(
    payload: bytes,
    description: str,
    requester: str,
    *,
    reveal: bool = False,
    wide: bool = False,
    all_words: bool = False,
    known: Known | None = None,
) -> Card:
    """The card of a request for the action in these bytes: with what is hidden, or wide where others read
    along. Raises InexactJson for bytes that are no action in canonical form."""
    known = known or Known()
    action, details = canonical.read_action(payload)
    covered = details if reveal else masking.covered(details, wide=wide)
    lines = actions.lines_of({"details": covered}, reveal=reveal)
    typed = targets.typed(action, details, canonical.digest(payload))
    matters = (
        Matter(name=ACTION, shown=actions.spelled(action)),
        *_matters(action, details, covered, typed, payload),
    )
    words = _words(description)
    few = len(words) if all_words else MOST_WORD_LINES
    return Card(
        requester=quoting.quote_within(requester, NAME_CHARACTERS),
        person=known.person,
        words=words[:few],
        more_words=words[few:],
        unusual=tuple(sorted((*_unusual(action, details, lines), *known.unusual), key=_badness)),
        hidden=() if reveal else tuple(_places(covered)),
        details=tuple(lines),
        matters=matters,
        typed=typed,
        headline=headlines.make(action, details, covered),
        comparison=known.comparison,
        is_high_risk=typed is not None,
    )


def _words(description: str) -> tuple[str, ...]:
    """What the agent says in short lines, cleaned and with secrets masked."""
    cleaned = quoting.clean_text(description, max(len(description), len(quoting.ELLIPSIS)))
    lines: list[str] = []
    for line in str(masking.cover(cleaned, wide=True)).split("\n"):
        narrow = wrapping.columns_of(scripts.in_order(line)) == len(line)
        lines += textwrap.wrap(" ".join(line.split()), WORD_COLUMNS if narrow else WORD_COLUMNS // 2)
    return tuple(map(scripts.in_order, lines))


def _badness(oddity: Oddity) -> int:
    """The worst first."""
    return (DANGER, ODD, DIFFERS).index(oddity.sign)


def _unusual(action: str, details: Mapping[str, Any], lines: Sequence[str]) -> Iterator[Oddity]:
    is_ten = is_high_risk(action)
    if is_ten:
        text = f"It is one of the ten actions that are always asked.{letters.respelled(action)}"
        yield Oddity(sign=DANGER, text=text, label="one of the ten")
    named = None if is_ten else dangers.of_name(action)
    found = dangers.found_in(details)
    if named and named.label not in {danger.label for danger in found}:
        found.append(named)
    for danger in found:
        yield Oddity(sign=DANGER if danger.is_danger else ODD, text=danger.text, label=danger.label)
    for part in unreadable_parts(details):
        place = ".".join(map(actions.masked_name, part.path)) or "all of it"
        yield Oddity(sign=DANGER, text=f"Nobody can read {place}: {part.why}.", label="cannot be read")
    shown = [actions.spelled(action), *lines]
    if escapes := letters.escapes_in(shown):
        signs = counted(sum(escapes.values()), "character")
        named_signs = letters.named(escapes)
        text = f"{signs} that nobody can see or that may pass for another: {named_signs}."
        yield Oddity(sign=DANGER, text=text, label="look-alike or unseen")
    for told in scripts.told(shown):
        label = "other signs" if told.startswith(scripts.SIGNS) else "another writing"
        yield Oddity(sign=ODD, text=told, label=label)
    yield from _length(lines)


def _length(lines: Sequence[str]) -> Iterator[Oddity]:
    characters = sum(map(len, lines))
    if len(lines) < LONG_LINES and characters < LONG_CHARACTERS:
        return
    long = counted(len(lines), "line") if len(lines) >= LONG_LINES else counted(characters, "character")
    repeated = sum(one == other for one, other in pairwise(lines))
    folded = f", {repeated:,} of which repeat the one before" if repeated >= folding.FEWEST_FOLDED else ""
    yield Oddity(sign=ODD, text=f"It is long: {long}{folded}.", label=long)


def _matters(
    action: str,
    details: Mapping[str, Any],
    covered: Mapping[str, Any],
    typed: Typed | None,
    payload: bytes,
) -> Iterator[Matter]:
    """What the action is done to; for a command, its line."""
    if command := command_in(covered):
        yield Matter(name=COMMAND, shown=_short(command))
        if (file := runnable.file_in(details)) and not runnable.is_usual(file, details[ARGV][0]):
            yield Matter(name=PROGRAM, shown=_short(actions.spelled(file)))
    code = [name for name in runnable.all_code_in(details) if not (command and name == ARGV)]
    named = dict.fromkeys((*code, *targets.matters(action, covered)))
    for name in [*named][:MOST_MATTERS]:
        shown = _short(actions.in_line(covered[name]))
        yield Matter(name=f"Its {_short(actions.masked_name(name))}", shown=shown)
    if typed and typed.argument is None:
        yield Matter(name=DIGEST, shown=canonical.digest(payload))


def command_in(covered: Mapping[str, Any]) -> str | None:
    """One line that a shell would read as the arguments of a command, as it is shown; None without any."""
    argv = covered.get(ARGV)
    if (
        not isinstance(argv, list)
        or not argv
        or not all(isinstance(each, str | masking.Partly) for each in argv)
    ):
        return None
    parts: list[str | masking.Hidden] = []
    for each in argv:
        words = each.parts if isinstance(each, masking.Partly) else (shlex.quote(each),)
        parts += (" ", *words) if parts else words
    return actions.spelled(masking.Partly(tuple(parts)))


def _short(shown: str) -> str:
    """Enough to recognise it; all of it stands among the arguments. No text has the quotes that it is cut
    with."""
    if len(shown) <= MATTER_CHARACTERS:
        return shown
    half = MATTER_CHARACTERS // 2
    first, last = shown[:half].rstrip("\\"), shown[-half:]
    left = len(shown) - len(first) - len(last)
    return f'{first}" [… {left:,} characters, all of them above …] "{last}'


def _places(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[HiddenPlace]:
    """Everything that is hidden, and where."""
    match value:
        case masking.Partly():
            for each in value.hidden:
                yield HiddenPlace(place=_place(path), characters=each.characters)
        case Mapping():
            for key, each in value.items():
                inside = (*path, key)
                for hidden in _places(masking.cover(key), inside):
                    yield HiddenPlace(place=f"the name {hidden.place}", characters=hidden.characters)
                yield from _places(each, inside)
        case list():
            for number, each in enumerate(value):
                yield from _places(each, (*path, number))


def _place(path: tuple[str | int, ...]) -> str:
    steps = (f"[{each}]" if isinstance(each, int) else f".{actions.masked_name(each)}" for each in path)
    return "".join(steps).removeprefix(".")


def counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
