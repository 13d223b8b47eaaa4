"""What statements of SQL destroy, grant or run, however they are written."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from frontdesk.formats.words import Interval

_SKIPPED = re.compile(
    r"/\*!\d*|\*/|/\*.*?(?:\*/|\Z)|--[^\n]*|\#[^\n]*|'(?:[^']|'')*'?|\"(?:[^\"]|\"\")*\"?|`[^`]*`?", re.DOTALL
)
_BEFORE = re.compile(r"[\s(]*(?:(?:explain|analyze|begin|verbose|not\s+atomic)\b\s*)*", re.IGNORECASE)
_ALWAYS = re.compile(r"\s*+(?:true|not\s+false|\(*+\s*+(\w++)\s*+=\s*+\1\b|1)", re.IGNORECASE)
_CHANGES = re.compile(r"update\s+\S+\s+(?:\w+\s+)?set\s+[\w.]+\s*=", re.IGNORECASE)
_DELETES = re.compile(r"delete\s+(?:from\b|\w+\s+from\b)", re.IGNORECASE)
_HEAD = re.compile(
    r"(?:\A|;)\s*(?P<verb>(?:drop|alter|create)\s+\w+(?:\s+if\s+exists)?|truncate(?:\s+table)?|delete\s+from"
    r"|insert\s+into|update)\s+(?P<target>[\w.\"`\[\]-]+)",
    re.IGNORECASE,
)
_WHERE = re.compile(r"\bwhere\b", re.IGNORECASE)
_WITH = re.compile(r"with\b.*?\)\s*(?=(?:delete|update|insert|select)\b)", re.IGNORECASE | re.DOTALL)
_MAY_BE = re.compile(
    r"\b(?:drop|truncate|delete|update|alter|grant|revoke|create|copy|exec|execute|call|select|replace|merge)\b",
    re.IGNORECASE,
)


class Verb(NamedTuple):
    """What a statement does, in a few words and in a sentence; the worse it is the higher."""

    badness: int
    label: str
    text: str


_OBJECT = r"(?:table|database|schema|index|view|user|role|column|tablespace|materialized|sequence|keyspace"
_OBJECT += r"|function|procedure|trigger|policy|extension|type|domain|publication|subscription|owned|server)"
_VERBS = (
    (re.compile(rf"drop\s+{_OBJECT}", re.IGNORECASE), Verb(9, "drops", "Drops what a database holds")),
    (re.compile(r"truncate\b", re.IGNORECASE), Verb(9, "empties a table", "Empties a table")),
    (
        re.compile(r"alter\s+table\b.*\b(?:disable\s+(?:trigger|row)|rename\b)", re.IGNORECASE | re.DOTALL),
        Verb(6, "changes a table", "Changes how a table is called or guarded"),
    ),
    (
        re.compile(r"merge\s+into\b.*\bthen\s+delete\b", re.IGNORECASE | re.DOTALL),
        Verb(7, "deletes rows", "Deletes rows of a table"),
    ),
    (
        re.compile(r"select\b.*\bpg_terminate_backend\b", re.I | re.DOTALL),
        Verb(5, "ends programs", "Ends what others run"),
    ),
    (
        re.compile(r"alter\s+table\b.*\bdrop\b", re.IGNORECASE | re.DOTALL),
        Verb(8, "drops a column", "Drops a part of a table"),
    ),
    (
        re.compile(
            r"(?:grant|revoke)\s+(?:(?:all|select|insert|update|delete|usage|execute|create|connect|references"
            r"|trigger|truncate|alter|drop|super|replication|index)\b[^;]*\s(?:on|to|from)\s"
            r"|\w+(?:\s*,\s*\w+)*\s+(?:to|from)\s+\w+\s*(?:with\b|$))"
            r"|(?:create|alter)\s+(?:user|role|login)\s+\S",
            re.IGNORECASE,
        ),
        Verb(7, "changes rights", "Changes who may do what in a database"),
    ),
    (
        re.compile(
            r"copy\b.*\bprogram\b|exec(?:ute)?\s+(?:\w+\.)*xp_cmdshell|.*\bxp_cmdshell\b", re.I | re.DOTALL
        ),
        Verb(8, "runs a program", "Has the database run a program"),
    ),
    (
        re.compile(r"copy\b.*\bto\b|select\b.*\binto\s+(?:out|dump)file\b", re.IGNORECASE | re.DOTALL),
        Verb(6, "writes a file", "Has the database write a file"),
    ),
)
EVERY_ROW = Verb(9, "deletes every row", "Deletes every row of a table: no condition bounds it")
SOME_ROWS = Verb(4, "deletes rows", "Deletes rows of a table")
CHANGES_ALL = Verb(8, "changes every row", "Changes every row of a table: no condition bounds it")


def verbs_in(text: str) -> Iterator[Verb]:
    """What the statements of a text do that is worth a look; nothing of what is no SQL."""
    if not _MAY_BE.search(text):
        return
    plain = _SKIPPED.sub(_stand_in, text)
    for statement in plain.split(";"):
        body = statement[_matched(_BEFORE, statement) :]
        body = body[_matched(_WITH, body) :]
        yield from _verbs(body)


def _stand_in(found: re.Match[str]) -> str:
    """Texts and names keep their place; what only some databases run is read, comments are not."""
    sign = found[0][0]
    return " " if sign in "/*-#" else "x"


def _matched(pattern: re.Pattern[str], text: str) -> int:
    found = pattern.match(text)
    return found.end() if found else 0


def _verbs(statement: str) -> Iterator[Verb]:
    for pattern, verb in _VERBS:
        if pattern.match(statement):
            yield verb
            return
    if _DELETES.match(statement):
        yield SOME_ROWS if _is_bounded(statement) else EVERY_ROW
    elif _CHANGES.match(statement) and not _is_bounded(statement):
        yield CHANGES_ALL


def verb_and_target(text: str) -> tuple[Interval, Interval] | None:
    """Where the verb of the first statement that changes something stands, and what it is done to."""
    found = _HEAD.search(text)
    return (found.span("verb"), found.span("target")) if found else None


def _is_bounded(statement: str) -> bool:
    where = _WHERE.search(statement)
    if where is None:
        return False
    condition = statement[where.end() :]
    always = _ALWAYS.match(condition)
    rest = condition[always.end() :].strip(" \n\t)") if always else "bounded"
    return bool(rest) and not re.match(r"or\b|limit\b", rest, re.IGNORECASE)
