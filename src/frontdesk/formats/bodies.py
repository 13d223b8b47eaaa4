"""JSON from strangers, read into records."""

import re
from typing import TypeVar

import msgspec

from frontdesk import errors
from frontdesk.formats import quoting

Read = TypeVar("Read")

_PLACE = re.compile(r"- at `\$\.?([^`]*)`|required field `([^`]*)`")


def read_json(kind: type[Read], body: bytes) -> Read:
    """The record in a body. Total: whatever is not one raises InvalidInput, which names the field.

    Fields that the record does not have are passed over.
    """
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.ValidationError as error:
        raise errors.InvalidInput(what="The body", why=quoting.clean_text(str(error))) from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise errors.InvalidInput(what="The body", why="it is not valid JSON of valid Unicode") from None
    except RecursionError:
        raise errors.InvalidInput(what="The body", why="it is nested too deeply") from None


def field_of(error: errors.InvalidInput) -> str | None:
    """The field that the error is about, when it is one of :func:`read_json` and names one."""
    found = _PLACE.search(str(error))
    return (found[1] or found[2] or None) if found else None
