"""Bodies that are almost requests: each is answered, or refused in the API's form and changes nothing."""

import asyncio
import json
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from frontdesk.channels import api_server
from frontdesk.contracts import channels
from frontdesk.flow import checks
from frontdesk.testing.desks import RecordingDesk
from tests import counts
from tests.fuzzing import Damage, changed_bytes

PARTS = [
    {"type": "input_text", "text": "Look"},
    {"type": "input_image", "image_url": "data:image/png;base64,AAAA", "detail": "low"},
    {"type": "input_file", "filename": "a", "file_data": "data:;base64,"},
]
CALL = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
RESPONSES = [
    {"input": "Hello", "instructions": "Be brief.", "metadata": {"a": "b"}, "user": "u", "store": True},
    {"input": "On", "previous_response_id": "resp_turn-1", "stream": True, "model": "m", "background": False},
    {"input": [{"role": "user", "content": PARTS}], "conversation": {"id": "work"}, "text": {"format": {}}},
    {
        "input": [
            {"role": "developer", "content": "Be kind."},
            CALL,
            {"type": "function_call_output", "call_id": "c", "output": "4"},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hi"}]},
            {"role": "user", "content": "Hello"},
        ],
        "tools": [],
        "tool_choice": "auto",
    },
]
COMPLETIONS = [
    {"messages": [{"role": "user", "content": "Hello"}], "stream": True, "n": 1},
    {
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "assistant", "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f"}}]},
            {"role": "tool", "tool_call_id": "c", "content": "4"},
            {"role": "user", "content": [{"type": "text", "text": "Look"}]},
        ],
        "stream_options": {"include_usage": True},
    },
]
REFUSED = {400, 404, 409, 422}
AT_ONCE = 500
"""A desk in memory looks through all that it has."""


class StrictDesk(RecordingDesk):
    """Refuses what a gateway would not store."""

    async def accept(self, happening: channels.Happening, **more: Any) -> channels.Receipt:
        if isinstance(happening, channels.Incoming):
            checks.check_event(happening.event_id, None)
            checks.check_message(happening)
        return await super().accept(happening, **more)


@asynccontextmanager
async def receiving() -> AsyncIterator[tuple[api_server.Channel, StrictDesk]]:
    channel, desk = (
        api_server.Channel(api_server.Options(tokens={"ada": lambda: "ada-token-0123456789"})),
        StrictDesk(),
    )
    task = asyncio.create_task(channel.receive(desk))
    await asyncio.sleep(0)
    yield channel, desk
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def headers_by(chance: random.Random) -> dict[str, str]:
    """Some with a key, which now and then somebody used before for something else."""
    key = {"idempotency-key": str(chance.randrange(AT_ONCE))}
    return chance.choice(({}, {}, key, {"x-frontdesk-session": "work"}))


def damaged(bodies: list[dict[str, Any]], damage: Damage, chance: random.Random) -> bytes:
    whole = json.dumps(damage(chance.choice(bodies), chance), default=str).encode("utf-8", "surrogatepass")
    return changed_bytes(whole, chance) if chance.random() < 0.3 else whole


async def asked(handle: Callable[..., Any], body: bytes, headers: dict[str, str]) -> tuple[int, bytes]:
    request = channels.Request(
        method="POST",
        path="",
        params={},
        query={},
        headers={"authorization": "Bearer ada-token-0123456789", **headers},
        body=body,
    )
    response: channels.Response = await handle(request)
    if isinstance(response.body, AsyncIterator):
        return response.status, b"".join([piece async for piece in response.body])
    return response.status, response.body


@pytest.mark.prove
@pytest.mark.timeout(counts.count(300, 3600))
@pytest.mark.parametrize(
    ("name", "bodies"), [("create_response", RESPONSES), ("create_completion", COMPLETIONS)]
)
async def test_damaged_body_is_answered_or_refused_and_then_changes_nothing(
    name: str, bodies: list[dict[str, Any]], tell: counts.Tell
) -> None:
    tried, seed, answered = counts.count(1_000, 100_000), random.randrange(2**32), 0
    chance, damage = random.Random(seed), Damage(("user", "message", "resp_turn-2", True, False))
    for _ in range(tried // AT_ONCE):
        async with receiving() as (channel, desk):
            (handle,) = [each.handle for each in channel.routes if each.about and each.about.name == name]
            for _ in range(AT_ONCE):
                body, before = damaged(bodies, damage, chance), len(desk.stored)
                status, answer = await asked(handle, body, headers_by(chance))
                assert status in {200, *REFUSED}, (seed, body, answer)
                answered += status == 200
                if status != 200:
                    assert msgspec.json.decode(answer)["error"]["message"], (seed, body)
                    assert len(desk.stored) == before, (seed, body)
    assert 0 < answered < tried
    tell(f"damaged bodies of {name}", tried)
