"""Which models an endpoint has: asked of it, within seconds."""

import asyncio
from collections.abc import Mapping

import httpx
import msgspec

from frontdesk.agents import chat

ASK_SECONDS = 5.0
MAX_BYTES = 4 * 1024 * 1024
NOT_FOR_CHAT = ("embed", "whisper", "tts", "audio", "image", "moderation", "rerank", "dall-e", "realtime")
"""What the names of models say that do not answer in words."""
SHOWN = 5


class Listed(msgspec.Struct, frozen=True):
    id: str


class List(msgspec.Struct, frozen=True):
    data: list[Listed]


async def list_models(
    base_url: str, token: str | None = None, headers: Mapping[str, str] | None = None
) -> list[str] | None:
    """The names of its models; None when it keeps no list. EndpointUnavailable or EndpointRefused."""
    request = chat.ChatRequest(base_url=base_url, body={}, token=token, headers=headers or {})
    with chat.translated_errors(request.endpoint):
        async with asyncio.timeout(ASK_SECONDS), httpx.AsyncClient(timeout=ASK_SECONDS) as client:
            address = f"{base_url.rstrip('/')}/models"
            sent = chat.headers_of(request) | {"accept-encoding": "identity"}
            async with client.stream("GET", address, headers=sent) as response:
                body = await chat.read_some(response, MAX_BYTES)
    if response.status_code == httpx.codes.NOT_FOUND:
        return None
    if response.status_code != httpx.codes.OK:
        raise chat.refusal_of(response, request, body[: chat.MAX_ERROR_BYTES])
    try:
        return [each.id for each in msgspec.json.decode(body, type=List).data]
    except (msgspec.MsgspecError, RecursionError):
        return None


def for_chat(names: list[str]) -> list[str]:
    """Those that answer in words, as far as their names tell."""
    return [name for name in names if not any(word in name.lower() for word in NOT_FOR_CHAT)]


def doubt(model: str, names: list[str]) -> str | None:
    """That an endpoint does not list a model: it may have it all the same, under another name."""
    same = (name == model or name.startswith(f"{model}:") or name.endswith(f"/{model}") for name in names)
    if not names or any(same):
        return None
    more = ", …" if len(names) > SHOWN else ""
    return f"the endpoint does not list the model {model!r}; it has {', '.join(names[:SHOWN])}{more}"
