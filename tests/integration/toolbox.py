"""Tools as a user would write them, found by the name of their place."""

import asyncio
from typing import Any


async def add(a: int, b: int) -> int:
    return a + b


async def crash() -> str:
    raise RuntimeError("the tool broke")


async def sleep() -> None:
    await asyncio.Event().wait()


async def picture() -> list[dict[str, Any]]:
    return [{"type": "text", "text": "a cat"}]


async def flood() -> str:
    return "\ud83d" + "x" * 1_000_000


NUMBERS = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}}
NOTHING = {"parameters": {"type": "object"}}
TOOLS = {
    "add": ({"description": "Adds.", "parameters": NUMBERS}, add),
    "crash": (NOTHING, crash),
    "sleep": (NOTHING, sleep),
    "picture": (NOTHING, picture),
    "flood": (NOTHING, flood),
}
