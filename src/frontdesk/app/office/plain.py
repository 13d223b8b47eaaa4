"""Plain data: what is asked and answered here goes over sockets, into JSON and onto pages as it is."""

from datetime import datetime
from enum import StrEnum
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from frontdesk import errors
from frontdesk.formats import quoting
from frontdesk.model.lists import LISTED_CHARACTERS
from frontdesk.model.platforms import PAGE
from frontdesk.model.sources import ChatType, SessionSource

Choice = TypeVar("Choice", bound=StrEnum)
Plain = dict[str, Any]

WHERE_CHARACTERS = 200


def among(kind: type[StrEnum]) -> msgspec.Meta:
    """Says of a text that it is one of these names."""
    return msgspec.Meta(extra_json_schema={"enum": list(map(str, kind))})


def chosen(what: str, kind: type[Choice], name: str) -> Choice:
    """What is meant by a name; ``what`` is what was asked."""
    try:
        return kind(name)
    except ValueError:
        raise errors.InvalidInput(what=f"{what} {name!r}", why=f"there is {', '.join(kind)}") from None


def plain(record: Any) -> Plain:
    data: Plain = msgspec.to_builtins(record, enc_hook=str)
    return data


def picked(record: object, *names: str) -> Plain:
    """These fields of it as plain data, times in ISO format."""
    fields = {name: getattr(record, name) for name in names}
    times = {name: field.isoformat() for name, field in fields.items() if isinstance(field, datetime)}
    return plain(fields | times)


def beginning(text: str | None) -> Plain:
    """A text as a row of a list has it, and whether that is all of it."""
    said = text or ""
    return {"text": said[:LISTED_CHARACTERS], "is_whole": len(said) <= LISTED_CHARACTERS}


def where_of(source: SessionSource) -> str:
    """A place for people, in a line that nobody's name turns around; with the chat, where one person may have
    several. Who has a name of which nothing can be seen is called by their id."""
    names = {"user_name": source.user_name, "chat_name": source.chat_name}
    source = replace(
        source, **{name: None for name, said in names.items() if not quoting.one_line(said or "")}
    )
    place, chat = source.description, source.chat_name or source.chat_id
    usual = (place, source.user_name, source.user_id, source.user_id_alt, "")
    direct = source.chat_type is ChatType.DM and chat not in usual and _says(source)
    return quoting.one_line(f"{place} ({chat})" if direct else place, WHERE_CHARACTERS)


def _says(source: SessionSource) -> bool:
    """Whether the chat's name says something to people: a chat of the page has an id that nobody chose."""
    return source.platform is not PAGE or bool(source.chat_name)
