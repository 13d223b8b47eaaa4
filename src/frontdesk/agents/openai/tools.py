"""The tools that a configured module offers to the model."""

import asyncio
import importlib
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import msgspec

from frontdesk import errors
from frontdesk.logs import get_logger
from frontdesk.model import events
from frontdesk.model.messages import Plain

log = get_logger(__name__)

MAX_RESULT_CHARACTERS = 100_000
CUT = "\n[cut: the result is longer than this]"

Tool = tuple[Mapping[str, Any], Callable[..., Awaitable[Any]]]
"""What the endpoint is told about it (``description``, ``parameters``), and what is called."""


class Toolbox:
    def __init__(self, tools: Mapping[str, Tool], seconds: float) -> None:
        self._tools = tools
        self._seconds = seconds

    @property
    def schemas(self) -> list[Plain]:
        """The tools as a request names them."""
        return [
            {"type": "function", "function": {**schema, "name": name}}
            for name, (schema, _) in self._tools.items()
        ]

    async def run(self, call: events.Call) -> events.Result:
        """What the tool gave back. Whatever goes wrong in it is a result that says so."""
        try:
            content = _content(await self._call(call))
        except errors.AgentFailed as error:
            return events.Result(id=call.id, name=call.name, content=str(error), is_error=True)
        except Exception as error:  # a tool is somebody else's code
            log.exception("tool_failed", tool=call.name)
            told = _safe(f"{type(error).__name__}: {error}")
            return events.Result(id=call.id, name=call.name, content=told, is_error=True)
        return events.Result(id=call.id, name=call.name, content=content)

    async def _call(self, call: events.Call) -> object:
        if call.name not in self._tools:
            raise errors.AgentFailed(why=f"there is no tool {call.name!r}. Known: {', '.join(self._tools)}")
        _, function = self._tools[call.name]
        arguments = _arguments(call)
        limit = asyncio.timeout(self._seconds)
        try:
            async with limit:
                return await function(**arguments)
        except TimeoutError as error:
            if not limit.expired():
                raise
            raise errors.AgentFailed(why=f"no result after {self._seconds:g} seconds") from error


def load(place: str) -> Mapping[str, Tool]:
    """The tools at ``package.module:NAME``."""
    module, _, name = place.partition(":")
    try:
        tools = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise _unusable(place, f"package.module:NAME that can be imported ({error})") from error
    if not isinstance(tools, Mapping) or not all(_is_tool(tool) for tool in tools.values()):
        raise _unusable(place, "a mapping of names to pairs (schema, async function)")
    return tools


def _is_tool(tool: object) -> bool:
    match tool:
        case (Mapping(), function):
            return callable(function)
    return False


def _unusable(place: str, allowed: str) -> errors.InvalidSetting:
    return errors.InvalidSetting(key="tools", value=place, allowed=allowed)


def _arguments(call: events.Call) -> dict[str, Any]:
    try:
        arguments = msgspec.json.decode(call.arguments)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise errors.AgentFailed(why=f"the arguments are not JSON ({error})") from error
    if not isinstance(arguments, dict):
        raise errors.AgentFailed(why="the arguments are not a JSON object")
    return arguments


def _content(value: object) -> str | list[dict[str, Any]]:
    """A text, or parts as they are; everything else as JSON."""
    if isinstance(value, str):
        return _safe(value)
    if isinstance(value, list) and value and all(isinstance(part, dict) and "type" in part for part in value):
        return value
    return _safe(msgspec.json.encode(value).decode()) if value is not None else ""


def _safe(text: str) -> str:
    """The text as it can be stored: of bounded length, without half characters."""
    cut = text if len(text) <= MAX_RESULT_CHARACTERS else text[:MAX_RESULT_CHARACTERS] + CUT
    return cut.encode("utf-8", "replace").decode()
