"""The large line of a decision, made from the bytes: the command, or the action and what matters of the rest.

It is short. What is left out of it is counted, and stands among the arguments.
"""

import re
import shlex
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import partial
from itertools import groupby, islice, pairwise
from typing import Any, NamedTuple

import msgspec

from frontdesk.formats import actions, commands, dangers, masking, runnable, statements, targets
from frontdesk.formats.commands import Simple
from frontdesk.formats.words import Interval
from frontdesk.model import spellings
from frontdesk.model.rules import is_always_asked

MOST_ARGUMENTS = 3
MOST_TARGETS = 4
PART_CHARACTERS = 120
FIRST_CHARACTERS, MARKED_CHARACTERS, LAST_CHARACTERS = 160, 120, 80
"""How much is shown of what is longer: of its beginning, of what is marked behind that, of its end."""
CUT = "⟦… {count:,} characters more …⟧"
MORE_ARGUMENTS = "⟦and {count:,} more argument{s}⟧"

TIMES = "⟦{count:,} times⟧"

ALSO = (
    *(
        "method",
        "tool",
        "operation",
        "amount",
        "currency",
        "quantity",
        "user",
        "principal",
        "member",
        "group",
        "from",
        "host",
        "server",
        "database",
        "region",
        "environment",
        "branch",
        "registry",
    ),
    *("version", "image", "tag", "role", "permission", "permissions", "mode", "grant", "where", "subject"),
)
"""Arguments that say more of what an action is about."""
RUN = (
    *("run", "exec", "execute", "shell", "bash", "sh", "command", "terminal", "run_command", "exec_command"),
    *("execute_command", "shell_command", "run_shell", "run_shell_command", "run_terminal_cmd"),
)
"""Names of actions that say no more than that a command is run."""
_ALSO, _RUN = (frozenset(map(spellings.skeleton, names)) for names in (ALSO, RUN))
# A backslash that is one itself is passed over with what follows it: it begins no escape.
_SAME_SIGNS = re.compile(r"\\\\|(?P<sign>\\[ntr]|\\u\{[0-9a-f]+\}|␣)(?P=sign){3,}")
_PLAIN = re.compile(r"(?!(?:true|false|null)\Z)[A-Za-z_/~.@][A-Za-z0-9_@%+=:./~-]*")


class HeadlineRole(StrEnum):
    VERB = "verb"
    TARGET = "target"
    OURS = "ours"
    """We say something of what is left out."""


class HeadlinePart(msgspec.Struct, frozen=True, kw_only=True):
    text: str
    role: HeadlineRole | None = None

    def __str__(self) -> str:
        return self.text


Spell = Callable[[str], str]
Marks = Sequence[tuple[Interval, HeadlineRole]]
"""What stands where in a text, in order."""


class _Piece(NamedTuple):
    """A piece of the line, as the bytes have it."""

    text: str
    role: HeadlineRole | None = None
    spell: Spell | None = None
    """None when the text is shown as it is."""
    left: int = 0
    """How many characters are left out in its place."""


def make(action: str, details: Mapping[str, Any], covered: Mapping[str, Any]) -> tuple[HeadlinePart, ...]:
    """The line for an action whose details are shown as they are covered."""
    code = runnable.code_in(details)
    pieces = [*_action(action, details, code)]
    if code is not None:
        pieces += _command(details[code], covered[code])
    file = runnable.file_in(details)
    if file is not None and not runnable.is_usual(file, details[runnable.ARGV][0]):
        pieces += (_Piece(", program: "), *_value(file, HeadlineRole.VERB))
    names = [*islice(_mattering(action, details, code), MOST_ARGUMENTS)]
    for place, name in enumerate(names):
        pieces.append(_Piece(", " if place or code is not None else " "))
        pieces += _cut(_Piece(name, None, actions.masked_name))
        pieces.append(_Piece(": "))
        pieces += _value(covered[name], None if place or code is not None else HeadlineRole.TARGET)
    left = len(details) - len(names) - (code is not None)
    if left:
        told = MORE_ARGUMENTS.format(count=left, s="" if left == 1 else "s")
        pieces += (_Piece(" "), _Piece(told, HeadlineRole.OURS))
    return tuple(_merged(_bounded(pieces)))


def _action(action: str, details: Mapping[str, Any], code: str | None) -> Iterator[_Piece]:
    """Its name, unless that says no more than that the command is run."""
    if code is not None and spellings.skeleton(action) in _RUN and not is_always_asked(action, details):
        return
    yield from _cut(_Piece(action, HeadlineRole.VERB, actions.spelled_name))
    if code is not None:
        yield _Piece(": ")


def _mattering(action: str, details: Mapping[str, Any], code: str | None) -> Iterator[str]:
    """The names of the arguments that matter, those that name the target first."""
    # Of several that may be the command, none is left out for what only says where.
    first = [*runnable.all_code_in(details), *targets.matters(action, details)]
    also = [name for name in details if spellings.skeleton(name) in _ALSO]
    others = [name for name, value in details.items() if not isinstance(value, dict | list)]
    names = dict.fromkeys((*first, *also, *(() if first or also or code else others)))
    return (name for name in names if name != code)


def _value(value: Any, role: HeadlineRole | None) -> Iterator[_Piece]:
    """An argument, in quotes unless they would make no difference."""
    if isinstance(value, str):
        plain = _PLAIN.fullmatch(value) and len(value) <= PART_CHARACTERS
        yield from _cut(_Piece(value, role, None if plain else actions.spelled))
        return
    yield from _cut(_Piece(actions.in_line(value), role))


def _command(value: Any, covered: Any) -> Iterator[_Piece]:
    """A command as one line: a text as it is, arguments as a shell would take them."""
    if isinstance(value, str):
        marks = _statement(value) or _marks(_chosen(dangers.read_code(value)))[0]
        yield from _item(covered, marks, actions.unquoted)
        return
    marked = _marks(_chosen(commands.read([each[: dangers.MOST_READ] for each in value])))
    for item, (text, shown) in enumerate(zip(value, covered, strict=True)):
        if item:
            yield _Piece(" ")
        marks = marked[item]
        if shlex.quote(text) == text:
            yield from _item(shown, marks, actions.unquoted)
        else:
            quote = _Piece("'", marks[0][1] if marks and marks[0][0] == (0, len(text)) else None)
            yield from (quote, *_item(shown, marks, _in_quotes), quote)


def _in_quotes(text: str) -> str:
    return actions.unquoted(text.replace("'", "'\"'\"'"))


def _statement(text: str) -> Marks:
    found = statements.verb_and_target(text)
    return [(found[0], HeadlineRole.VERB), (found[1], HeadlineRole.TARGET)] if found else []


def _chosen(simples: Sequence[Simple]) -> Simple | None:
    """The command that matters: the worst, else the one that says most."""
    worst = max(dangers.of_commands(simples), key=lambda found: found[0].badness, default=None)
    is_danger = worst is not None and worst[0].badness >= dangers.WORST
    return worst[1] if worst and is_danger else commands.telling(simples)


def _marks(chosen: Simple | None) -> Mapping[int, Marks]:
    """Where the verb and the target of a command stand, in each argument."""
    verbs, operands = commands.verb_and_target(chosen) if chosen else ((), ())
    spans: dict[int, dict[Interval, HeadlineRole]] = defaultdict(dict)
    for role, words in ((HeadlineRole.TARGET, operands[:MOST_TARGETS]), (HeadlineRole.VERB, verbs)):
        for word in words:
            if word.start < word.end:
                spans[word.item][word.start, word.end] = role
    marks = {item: sorted(found.items()) for item, found in spans.items()}
    return defaultdict(list, marks)


def _item(shown: str | masking.Partly, marks: Marks, spell: Spell) -> Iterator[_Piece]:
    """A text in pieces: where something is hidden, and where a mark begins or ends."""
    parts = shown.parts if isinstance(shown, masking.Partly) else (shown,)
    length = sum(len(part.value if isinstance(part, masking.Hidden) else part) for part in parts)
    start = 0
    for part in parts:
        text = part.value if isinstance(part, masking.Hidden) else part
        end = start + len(text)
        if isinstance(part, masking.Hidden):
            yield _Piece(masking.MARK, _role_at(marks, start))
        else:
            edges = sorted({start, end} | {at for span, _ in marks for at in span if start < at < end})
            for left, right in pairwise(edges):
                piece = _Piece(text[left - start : right - start], _role_at(marks, left))
                yield from _cut(piece._replace(spell=partial(_within, spell, left > 0, right < length)))
        start = end


def _role_at(marks: Marks, place: int) -> HeadlineRole | None:
    return next((role for (start, end), role in marks if start <= place < end), None)


def _within(spell: Spell, goes_before: bool, goes_on: bool, text: str) -> str:
    """A piece of a longer text: one space at its edge stands between words."""
    if text == " ":
        return text if goes_before and goes_on else spell(text)
    before = " " if goes_before and text[:1] == " " and text[1:2] != " " else ""
    after = " " if goes_on and text[-1:] == " " and text[-2:-1] != " " else ""
    return before + spell(text[len(before) : len(text) - len(after)]) + after


def _cut(piece: _Piece) -> Iterator[_Piece]:
    """The piece, or both of its ends and how much is between them."""
    if len(piece.text) <= PART_CHARACTERS:
        yield piece
        return
    half = PART_CHARACTERS // 2
    yield piece._replace(text=piece.text[:half])
    yield _left_out(len(piece.text) - 2 * half)
    yield piece._replace(text=piece.text[-half:])


def _left_out(count: int) -> _Piece:
    return _Piece("", HeadlineRole.OURS, left=count)


def _bounded(pieces: Sequence[_Piece]) -> Iterator[_Piece]:
    """The beginning, the end, and of what is between them what is marked."""
    first, last = _room(pieces, FIRST_CHARACTERS), _room(pieces[::-1], LAST_CHARACTERS)
    end = max(first, len(pieces) - last)
    yield from pieces[:first]
    room, left = MARKED_CHARACTERS, 0
    for piece in pieces[first:end]:
        if piece.role in (HeadlineRole.VERB, HeadlineRole.TARGET) and len(piece.text) <= room:
            if left:
                yield _left_out(left)
            yield piece
            room, left = room - len(piece.text), 0
        else:
            left += piece.left or len(piece.text)
    if left:
        yield _left_out(left)
    yield from pieces[end:]


def _room(pieces: Sequence[_Piece], room: int) -> int:
    """How many of the first pieces have room."""
    for place, piece in enumerate(pieces):
        room -= len(piece.text)
        if room < 0:
            return max(place, 1)
    return len(pieces)


def _merged(pieces: Iterator[_Piece]) -> Iterator[HeadlinePart]:
    """As they are shown; those that follow each other in one role as one."""
    for (role, leaves_out), same in groupby(pieces, key=lambda piece: (piece.role, piece.left > 0)):
        if leaves_out:
            yield HeadlinePart(text=CUT.format(count=sum(piece.left for piece in same)), role=role)
        elif text := "".join(piece.spell(piece.text) if piece.spell else piece.text for piece in same):
            yield from _folded(text, role)


def _folded(text: str, role: HeadlineRole | None) -> Iterator[HeadlinePart]:
    """The text, with how often a sign that is an escape follows itself said in our words."""
    done = 0
    for found in _SAME_SIGNS.finditer(text):
        if found["sign"] is None:
            continue
        yield HeadlinePart(text=text[done : found.end("sign")], role=role)
        count = (found.end() - found.start()) // len(found["sign"])
        yield HeadlinePart(text=TIMES.format(count=count), role=HeadlineRole.OURS)
        done = found.end()
    if done < len(text):
        yield HeadlinePart(text=text[done:], role=role)
