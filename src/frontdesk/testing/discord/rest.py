"""What the REST API of the stand-in checks, and how it says no."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from aiohttp import web

MOST_CONTENT_CHARACTERS = 2000
MOST_REQUEST_BYTES = 25 * 1024 * 1024
MOST_ROWS = 5
MOST_IN_A_ROW = 5
MOST_NONCE_CHARACTERS = 25
MOST_CUSTOM_ID_CHARACTERS = 100
MOST_LABEL_CHARACTERS = 80
MOST_FILES = 10
MOST_DESCRIPTION_CHARACTERS = 100
MOST_PAGE = 100
BUTTON, ROW = 2, 1
ESCAPED = re.compile(r"\\([^a-zA-Z0-9\s])", re.ASCII)


def visible(markup: str) -> str:
    """What a reader sees of a text without marks."""
    return ESCAPED.sub(r"\1", markup)


class DiscordFault(msgspec.Struct, kw_only=True):
    """Something that goes wrong with calls. Without a status the connection is cut, or hangs."""

    method: str | None = None
    path: str = ""
    """What the call's path has in it."""
    status: int | None = None
    retry_after: float | None = None
    everywhere: bool = False
    taken: bool = False
    """The platform does what was asked, and only its answer is lost."""
    hangs: bool = False
    times: int | None = 1
    """How often; None: always."""

    def concerns(self, method: str, path: str) -> bool:
        return self.method in (None, method) and self.path in path


class DiscordRefusal(Exception):
    """The platform says no."""

    def __init__(self, status: int, code: int, message: str, **more: Any) -> None:
        super().__init__(message)
        self.status = status
        self.told = {"code": code, "message": message, **more}

    def response(self) -> web.Response:
        return web.json_response(self.told, status=self.status)


def invalid(field: str, why: str) -> DiscordRefusal:
    problem = {field: {"_errors": [{"code": "INVALID", "message": why}]}}
    return DiscordRefusal(400, 50035, "Invalid Form Body", errors=problem)


UNKNOWN_CHANNEL = DiscordRefusal(404, 10003, "Unknown Channel")
UNKNOWN_MESSAGE = DiscordRefusal(404, 10008, "Unknown Message")
UNKNOWN_INTERACTION = DiscordRefusal(404, 10062, "Unknown interaction")
UNAUTHORIZED = DiscordRefusal(401, 0, "401: Unauthorized")
NOT_OURS = DiscordRefusal(403, 50005, "Cannot edit a message authored by another user")
MISSING_ACCESS = DiscordRefusal(403, 50001, "Missing Access")


class ReceivedFile(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    kind: str
    data: bytes


async def read_body(request: web.Request) -> tuple[dict[str, Any] | list[Any], list[ReceivedFile]]:
    """What a call says, and its files."""
    if not request.can_read_body:
        return {}, []
    if request.content_type != "multipart/form-data":
        return json.loads(await request.read()), []
    told: dict[str, Any] = {}
    files: list[ReceivedFile] = []
    async for part in await request.multipart():
        assert part is not None
        name, data = str(getattr(part, "name", "")), bytes(await part.read())  # type: ignore[union-attr]
        if name == "payload_json":
            told = json.loads(data)
        elif name == f"files[{len(files)}]":
            kind = part.headers.get("content-type", "application/octet-stream")
            files.append(ReceivedFile(name=str(getattr(part, "filename", "")), kind=kind, data=data))
        else:
            raise invalid(name, "files are numbered from 0 on")
    if sum(len(each.data) for each in files) > MOST_REQUEST_BYTES:
        raise DiscordRefusal(413, 40005, "Request entity too large")
    return told, files


def check_message(told: dict[str, Any], files: list[ReceivedFile], *, is_new: bool) -> None:
    content = told.get("content", "")
    if not isinstance(content, str) or len(content) > MOST_CONTENT_CHARACTERS:
        raise invalid("content", "Must be 2000 or fewer in length.")
    if is_new and not content.strip() and not files:
        raise DiscordRefusal(400, 50006, "Cannot send an empty message")
    if len(files) > MOST_FILES:
        raise invalid("files", "Must be 10 or fewer.")
    if len(str(told.get("nonce", ""))) > MOST_NONCE_CHARACTERS:
        raise invalid("nonce", "Must be 25 or fewer in length.")
    mentions = told.get("allowed_mentions")
    if not isinstance(mentions, dict) or mentions.get("parse") != []:
        raise AssertionError("somebody could be called: allowed_mentions must be none")
    check_buttons(told.get("components") or [])


def check_buttons(rows: list[dict[str, Any]]) -> None:
    names: list[str] = []
    if len(rows) > MOST_ROWS:
        raise invalid("components", "Must be 5 or fewer in length.")
    for row in rows:
        buttons = row.get("components") or []
        if row.get("type") != ROW or not 1 <= len(buttons) <= MOST_IN_A_ROW:
            raise invalid("components", "Must be between 1 and 5 in length.")
        for button in buttons:
            name, label = button.get("custom_id") or "", button.get("label") or ""
            if button.get("type") != BUTTON or not 1 <= len(name) <= MOST_CUSTOM_ID_CHARACTERS:
                raise invalid("custom_id", "Must be between 1 and 100 in length.")
            if not 1 <= len(label) <= MOST_LABEL_CHARACTERS:
                raise invalid("label", "Must be between 1 and 80 in length.")
            names.append(name)
    if len(set(names)) != len(names):
        raise invalid("custom_id", "Component custom id cannot be duplicated")


def check_commands(told: list[dict[str, Any]]) -> None:
    for each in told:
        named = re.fullmatch(r"[a-z0-9_-]{1,32}", each["name"])
        if not named or not 1 <= len(each["description"]) <= MOST_DESCRIPTION_CHARACTERS:
            raise invalid("name", "Command name or description is invalid")


def page(messages: Sequence[dict[str, Any]], query: Mapping[str, str]) -> list[dict[str, Any]]:
    """The messages right after one, or the last ones, the newest of them first."""
    limit = int(query.get("limit", 50))
    if not 1 <= limit <= MOST_PAGE:
        raise invalid("limit", "int value should be between 1 and 100.")
    after = query.get("after")
    found = sorted(
        (each for each in messages if int(each["id"]) > int(after or 0)), key=lambda each: int(each["id"])
    )
    return (found[-limit:] if after is None else found[:limit])[::-1]
