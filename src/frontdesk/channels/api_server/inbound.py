"""What comes in: who asks, in which conversation, and what."""

import hashlib
import hmac
import re
import uuid
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from frontdesk import errors
from frontdesk.channels.called import read_json
from frontdesk.contracts import channels
from frontdesk.contracts.secrets import Secret
from frontdesk.formats import http, quoting
from frontdesk.logs import get_logger
from frontdesk.model import messages, turns
from frontdesk.model.platforms import Platform
from frontdesk.model.sources import SessionSource

log = get_logger(__name__)

SESSION_HEADER = "x-frontdesk-session"
REPEAT_HEADER = "idempotency-key"
SAID = "said"
"""The name under which the digest of a message is noted."""
MAX_NAME_CHARACTERS = 200
MOST_PIECES = 10_000
"""Of messages and their parts in one request: each is looked at, and others wait meanwhile."""

_NAME = re.compile(rf"[ -~]{{1,{MAX_NAME_CHARACTERS}}}")
_KEPT = ("role", "content", "name", "tool_calls", "tool_call_id")
_ROLES = {"developer": "system"}


class StreamOptions(msgspec.Struct, frozen=True, kw_only=True):
    include_usage: bool = False


class CompletionsRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of a chat-completions request that matter here; the agent decides about the others."""

    messages: Annotated[list[dict[str, Any]], Meta(examples=[[{"role": "user", "content": "Hello"}]])]
    stream: bool | None = False
    stream_options: StreamOptions | None = None
    n: int | None = 1

    @property
    def wants_usage(self) -> bool:
        return self.stream_options is not None and self.stream_options.include_usage


def find_user(tokens: Mapping[str, Secret], headers: Mapping[str, str]) -> str | None:
    """Whose token the request carries; a short one is nobody's. Every token is compared, in the same time
    whatever it holds."""
    kind, _, given = headers.get("authorization", "").partition(" ")
    digest = _digest(given.strip())
    found = [user for user, secret in tokens.items() if hmac.compare_digest(_known(user, secret), digest)]
    return found[0] if found and given.strip() and kind.lower() == "bearer" else None


def _known(user: str, secret: Secret) -> bytes:
    try:
        return _digest(http.check_credential(secret()))
    except (errors.UnusableSecret, errors.InvalidInput) as error:
        log.warning("credential_weak", name=user, why=error)
    except errors.MissingSecret as error:
        log.warning("api_token_missing", user=user, why=error)
    return b""


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()


def read_ask(body: bytes) -> CompletionsRequest:
    """The request in a body. Total: what is none raises InvalidInput."""
    ask = read_json(CompletionsRequest, body)
    if not ask.messages:
        raise invalid("messages", "it is empty")
    check_pieces("messages", ask.messages)
    if ask.n not in (None, 1):
        raise invalid("n", "there is one answer only")
    if ask.messages[-1].get("role") != "user":
        raise invalid("messages", "the last one must be the user's")
    return ask


def check_pieces(field: str, given: Sequence[Mapping[str, Any]]) -> None:
    contents = [value for each in given for value in (each.get("content"), each.get("output"))]
    if len(given) + sum(len(each) for each in contents if isinstance(each, list)) > MOST_PIECES:
        raise invalid(field, f"it has more than {MOST_PIECES} messages and parts")


def build_incoming(
    ask: CompletionsRequest, user: str, account: str | None, headers: Mapping[str, str]
) -> channels.Incoming:
    """The message to be answered, in the conversation that the headers name, or in one of its own.

    A named conversation is kept here, so that only the last message counts; a fresh one begins with
    those before it. Raises InvalidInput.
    """
    *earlier, last = [plain(f"messages[{number}]", message) for number, message in enumerate(ask.messages)]
    name, repeat = named(headers, SESSION_HEADER), named(headers, REPEAT_HEADER)
    chat_id = f"{user}/{name}" if name else f"/{user}/{made_once(repeat, user)}"
    history = [] if name else earlier
    return channels.Incoming(
        source=source_of(user, account, chat_id),
        text=text_of("messages", last["content"]),
        content=last["content"] if isinstance(last["content"], list) else None,
        event_id=made_once(repeat, user, chat_id),
        history=history,
        noted=noted_of(repeat, history, last["content"]),
    )


def noted_of(repeat: str | None, *said: object) -> dict[str, Any]:
    """What is noted of a message that has a key, so that another one with the same key is known."""
    return {} if repeat is None else {SAID: hashlib.sha256(msgspec.json.encode(said)).hexdigest()[:32]}


def check_repeated(incoming: channels.Incoming, before: turns.Turn | None) -> None:
    """KeyReused when the key came with another message before."""
    said = incoming.noted.get(SAID)
    if before and before.noted.get(SAID, said) != said:
        raise errors.KeyReused()


def source_of(user: str, account: str | None, chat_id: str) -> SessionSource:
    return SessionSource(
        platform=Platform.API_SERVER, account=account, chat_id=chat_id, user_id=user, user_name=user
    )


def made_once(repeat: str | None, *about: str) -> str:
    """An id of its own; a repeated request comes back to the one it made."""
    if repeat is None:
        return uuid.uuid4().hex
    return hashlib.sha256(msgspec.json.encode((*about, repeat))).hexdigest()[:32]


def is_name(name: str) -> bool:
    return _NAME.fullmatch(name) is not None


def named(headers: Mapping[str, str], header: str) -> str | None:
    name = headers.get(header)
    if name is not None and not is_name(name):
        raise errors.InvalidInput(
            what=f"The header {header}", why=f"use 1 to {MAX_NAME_CHARACTERS} printable ASCII characters"
        )
    return name


def plain(where: str, message: dict[str, Any]) -> messages.Plain:
    """A message as a transcript holds it, with nothing in it that only we may say."""
    kept = {name: message[name] for name in _KEPT if message.get(name) is not None}
    kept["role"] = _ROLES.get(str(kept.get("role")), kept.get("role"))
    try:
        messages.pack(kept)
    except errors.InvalidMessage as error:
        raise invalid(where, str(error)) from None
    if kept["role"] == messages.Role.SESSION_META:
        raise invalid(where, "there is no such role here")
    _check_parts(f"{where}.content", kept.get("content"))
    return kept


def _check_parts(where: str, content: object) -> None:
    if not isinstance(content, str | list | None):
        raise invalid(where, "use a text or a list of parts")
    for part in content if isinstance(content, list) else ():
        if not isinstance(part, dict) or not isinstance(part.get("type"), str):
            raise invalid(where, "each part is an object with a type")
        if part["type"] == "text" and not isinstance(part.get("text"), str):
            raise invalid(where, "a text part has a text")


def text_of(where: str, content: str | list[dict[str, Any]]) -> str:
    if isinstance(content, str):
        text, others = content, False
    else:
        text = "\n".join(part["text"] for part in content if part["type"] == "text")
        others = any(part["type"] != "text" for part in content)
    if not text.strip() and not others:
        raise invalid(where, "the last one is empty")
    return text


def invalid(field: str, why: str) -> errors.InvalidInput:
    return errors.InvalidInput(what="The body", why=f"{quoting.clean_text(why)} - at `$.{field}`")
