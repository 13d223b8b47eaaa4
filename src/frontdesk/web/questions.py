"""Questions as rows: a row of a table is made of the method that answers it, and of its own signature."""

import inspect
from collections.abc import AsyncGenerator, Callable, Mapping
from typing import TYPE_CHECKING, Any, get_args, get_origin, get_type_hints

import msgspec

from frontdesk import errors
from frontdesk.formats import quoting
from frontdesk.web.operations import Form, Table

if TYPE_CHECKING:
    from frontdesk.web.endpoints import HttpCall


KEY = "key"
WRITTEN = "text"
"""What somebody says."""


def questions_of(kind: type) -> list[Callable[..., Any]]:
    """The methods that answer something."""
    methods = (method for name, method in inspect.getmembers(kind, inspect.isfunction) if name[0] != "_")
    return [each for each in methods if inspect.iscoroutinefunction(each) or inspect.isasyncgenfunction(each)]


def check_texts(values: Mapping[str, Any], what: str) -> None:
    """Refuse NUL in what the store is to look up: PostgreSQL has no such text. What people write is kept as
    bytes."""
    for name, value in values.items():
        texts = value if isinstance(value, list) else [value]
        if name != WRITTEN and any(isinstance(each, str) and "\0" in each for each in texts):
            raise errors.InvalidInput(
                what=what, why=f"the character U+0000 is in `{quoting.clean_text(name)}`"
            )


def add_question(
    table: Table, verb: str, path: str, method: Callable[..., Any], gives: Any = None, **columns: Any
) -> None:
    """Add a row for a method. Its arguments are in the path where that names them, else after a question mark
    or in the body; what it returns is the answer, or the answer as it comes. A visitor is answered from what
    they see. ``key`` is the idempotency key, where the row takes one."""
    by_header = columns.get("once_by_key", False)
    hints = get_type_hints(method, include_extras=True)
    told = hints.pop("return")
    _, *parameters = inspect.signature(method).parameters.values()
    fields: list[Any] = [
        (each.name, hints[each.name], *(() if each.default is each.empty else (each.default,)))
        for each in parameters
        if f"{{{each.name}}}" not in path and not (by_header and each.name == KEY)
    ]
    title = "Ask" + method.__name__.title().replace("_", "")
    arguments = msgspec.defstruct(title, fields, forbid_unknown_fields=True, kw_only=True)

    async def handle(answering: Any, call: "HttpCall") -> Any:
        given = call.query if verb == "GET" else call.read(arguments)
        check_texts(call.data, "The body")
        asked = answering.seen_by(call.visitor) if call.visitor else answering
        named = {KEY: call.key} if by_header else {}
        result = method(asked, **call.params, **msgspec.structs.asdict(given), **named)
        return await result if inspect.isawaitable(result) else result

    handle.__name__, handle.__doc__ = method.__name__, method.__doc__
    form = Form.JSON
    if get_origin(told) is AsyncGenerator:
        form, told = Form.TEXT if get_args(told)[0] is str else Form.LINES, ()
    asking = {"query" if verb == "GET" else "body": arguments}
    table.add(verb, path, told if gives is None else gives, form=form, **asking | columns)(handle)
