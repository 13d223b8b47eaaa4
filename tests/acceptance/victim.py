"""A client of the session service that does not expect to live long.

Some chats talk at once. Each takes its steps in turn and says so on the standard output after the service
answered; a new life begins with the step that nobody was told about. What the chats say is computed from
their number and the turn's, so that the store can be compared with it.

    python -m tests.acceptance.victim '{"url": "sqlite:///state.db", "progress": {"0": [0, "ask"]}}'
"""

import asyncio
import logging
import os
import sys
from enum import StrEnum
from typing import Any

import msgspec

from frontdesk import (
    GatewayConfig,
    Platform,
    ResetMode,
    SessionResetPolicy,
    SessionSource,
    SessionStore,
    Usage,
    errors,
)

LASTING = GatewayConfig(default_reset_policy=SessionResetPolicy(mode=ResetMode.NONE, max_messages=0))
RESET_TURNS = 5
AGAIN_SECONDS = 0.05

Message = dict[str, Any]


class Step(StrEnum):
    """What a chat does in a turn, in this order."""

    ASK = "ask"
    ANSWER = "answer"
    RESET = "reset"


class Orders(msgspec.Struct, frozen=True, kw_only=True):
    """Where each chat goes on, and the turn before which all stop."""

    url: str
    progress: dict[int, tuple[int, Step]]
    until: int | None = None


class Opening(msgspec.Struct, frozen=True, tag=True):
    """From now on the client is at the store."""


class Said(msgspec.Struct, frozen=True, tag=True):
    """A step that the service has acknowledged."""

    chat: int
    turn: int
    step: Step


class Failed(msgspec.Struct, frozen=True, tag=True):
    """A step that the service refused and that is tried again."""

    chat: int
    error: str


def source(chat: int) -> SessionSource:
    return SessionSource(platform=Platform.TELEGRAM, chat_id=str(1000 + chat), user_id=str(1000 + chat))


def question(chat: int, turn: int) -> Message:
    return {"role": "user", "content": f"question {turn} of {chat}", "platform_message_id": f"{chat}-{turn}"}


def answer(chat: int, turn: int) -> list[Message]:
    call = f"call-{chat}-{turn}"
    function = {"name": "look", "arguments": "{}"}
    return [
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"id": call, "type": "function", "function": function}],
        },
        {"role": "tool", "tool_call_id": call, "content": "seen " * (turn % 50)},
        {"role": "assistant", "content": f"answer {turn} to {chat}"},
    ]


def used(chat: int, turn: int) -> Usage:
    return Usage(input_tokens=1000 + turn, output_tokens=chat + 1, last_prompt_tokens=turn)


def following(chat: int, turn: int, step: Step) -> tuple[int, Step]:
    """The step after this one. Chats with an odd number start afresh now and then."""
    if step is Step.ASK:
        return turn, Step.ANSWER
    if step is Step.ANSWER and chat % 2 and turn % RESET_TURNS == RESET_TURNS - 1:
        return turn, Step.RESET
    return turn + 1, Step.ASK


async def talk(service: SessionStore, chat: int, orders: Orders) -> None:
    turn, step = orders.progress[chat]
    while orders.until is None or turn < orders.until:
        try:
            await take(service, chat, turn, step)
        except errors.StoreError as error:
            say(Failed(chat, str(error)))
            await asyncio.sleep(AGAIN_SECONDS)
        else:
            say(Said(chat, turn, step))
            turn, step = following(chat, turn, step)


async def take(service: SessionStore, chat: int, turn: int, step: Step) -> None:
    entry = await service.get_or_create_session(source(chat))
    match step:
        case Step.ASK:
            await service.append_to_transcript(entry.session_id, question(chat, turn))
        case Step.ANSWER:
            await service.record_turn(
                entry.session_id, answer(chat, turn), turn_id=f"{chat}-{turn}", usage=used(chat, turn)
            )
        case Step.RESET:
            await service.reset_session(entry.session_key)


def say(what: Opening | Said | Failed) -> None:
    os.write(sys.stdout.fileno(), msgspec.json.encode(what) + b"\n")


async def main(orders: Orders) -> None:
    say(Opening())
    async with await SessionStore.open(orders.url, LASTING) as service, asyncio.TaskGroup() as chats:
        for chat in orders.progress:
            chats.create_task(talk(service, chat, orders))


if __name__ == "__main__":
    logging.disable()
    asyncio.run(main(msgspec.json.decode(sys.argv[1], type=Orders)))
