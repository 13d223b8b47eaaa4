"""Questions as rows: a row of a table is made of the method that answers it, and of its own signature."""

import inspect
from collections.abc import AsyncGenerator, Callable
from typing import TYPE_CHECKING, Any, get_args, get_origin, get_type_hints

import msgspec

from frontdesk.web.operations import Form, Table

if TYPE_CHECKING:
    from frontdesk.web.endpoints import HttpCall


def questions_of(kind: type) -> list[Callable[..., Any]]:
    """The methods that answer something."""
    methods = (method for name, method in inspect.getmembers(kind, inspect.isfunction) if name[0] != "_")
    return [each for each in methods if inspect.iscoroutinefunction(each) or inspect.isasyncgenfunction(each)]


def add_question(table: Table, verb: str, path: str, method: Callable[..., Any], **columns: Any) -> None:
    """Add a row for a method. Its arguments are in the path where that names them, else after a question mark
    or in the body; what it returns is the answer, or the answer as it comes. A visitor is answered from what
    they see."""
    hints = get_type_hints(method)
    gives = hints.pop("return")
    _, *parameters = inspect.signature(method).parameters.values()
    fields: list[Any] = [
        (each.name, hints[each.name], *(() if each.default is each.empty else (each.default,)))
        for each in parameters
        if f"{{{each.name}}}" not in path
    ]
    title = "Ask" + method.__name__.title().replace("_", "")
    arguments = msgspec.defstruct(title, fields, forbid_unknown_fields=True, kw_only=True)

    async def handle(answering: Any, call: "HttpCall") -> Any:
        given = call.query if verb == "GET" else call.read(arguments)
        asked = answering.seen_by(call.visitor) if call.visitor else answering
        result = method(asked, **call.params, **msgspec.structs.asdict(given))
        return await result if inspect.isawaitable(result) else result

    handle.__name__, handle.__doc__ = method.__name__, method.__doc__
    form = Form.JSON
    if get_origin(gives) is AsyncGenerator:
        form, gives = Form.TEXT if get_args(gives)[0] is str else Form.LINES, ()
    asking = {"query" if verb == "GET" else "body": arguments}
    table.add(verb, path, gives, form=form, **asking | columns)(handle)
