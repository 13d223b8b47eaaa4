"""What the platform does for each method, and what it refuses."""

import mimetypes
import re
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from frontdesk.testing.slack.inventory import TeamCall, TeamChat, TeamFile, TeamPost, TeamRefusal

if TYPE_CHECKING:
    from frontdesk.testing.slack.workspace import Workspace

Method = Callable[["Workspace", TeamCall], dict[str, Any]]
METHODS: dict[str, Method] = {}
POST_CHARACTERS = 40_000
UPDATE_CHARACTERS = 4000
SECTION_CHARACTERS = 3000
STREAM_CHARACTERS = 12_000
BLOCKS_CHARACTERS = 13_000
MOST_BLOCKS = 50
MOST_ELEMENTS = 25
BUTTON_CHARACTERS = 75
VALUE_CHARACTERS = 2000
MOST_PAGE = 999
UNKNOWN_KIND = "application/octet-stream"
NAME = re.compile(r"[a-z0-9_+:'-]{1,100}")
MARKED = re.compile(r"<(?![@#!]|https?://|mailto:)")


def method(name: str) -> Callable[[Method], Method]:
    def keep(function: Method) -> Method:
        METHODS[name] = function
        return function

    return keep


def needed(call: TeamCall, *names: str) -> None:
    for name in names:
        if not call.fields.get(name):
            raise TeamRefusal("invalid_arguments")


def find_chat(team: "Workspace", call: TeamCall, name: str = "channel", *, to_write: bool = True) -> TeamChat:
    chat = team.chats.get(str(call.fields.get(name)))
    if chat is None:
        raise TeamRefusal("channel_not_found")
    if chat.waits_until > time.monotonic():
        team.impatient.append(call)
        raise TeamRefusal("ratelimited", 429, int(chat.waits_until - time.monotonic()) + 1)
    if not chat.is_member:
        raise TeamRefusal("not_in_channel")
    if chat.is_archived and to_write:
        raise TeamRefusal("is_archived")
    return chat


def read_text(call: TeamCall, most: int) -> tuple[str, list[dict[str, Any]] | None]:
    """The text and the blocks of a message; blocks of None were not named."""
    text, blocks = call.fields.get("text") or "", call.fields.get("blocks")
    if not text.strip() and not blocks:
        raise TeamRefusal("no_text")
    if len(text) > most:
        raise TeamRefusal("msg_too_long")
    if MARKED.search(text) or "<!" in text:
        raise AssertionError(f"a text that was not escaped: {text!r}")
    if blocks is not None:
        check_blocks(blocks)
    return text, blocks


def check_blocks(blocks: Any) -> None:
    if not isinstance(blocks, list) or len(blocks) > MOST_BLOCKS:
        raise TeamRefusal("invalid_blocks")
    actions = [name for block in blocks for name in check_buttons(block)]
    if len(actions) != len(set(actions)):
        raise TeamRefusal("invalid_blocks")
    if sum(map(block_size, blocks)) > BLOCKS_CHARACTERS:
        raise TeamRefusal("msg_blocks_too_long")


def block_size(block: dict[str, Any]) -> int:
    """How long the text of a block is; a refusal where the platform does not take it."""
    if block["type"] == "actions":
        return 0
    if block["type"] == "section":
        told = block["text"]["text"]
        fits = 0 < len(told) <= SECTION_CHARACTERS and block["text"]["type"] == "mrkdwn"
    else:
        parts = [part for each in block["elements"] for part in each["elements"]]
        told = "".join(part["text"] for part in parts)
        fits = block["type"] == "rich_text" and all(part["type"] == "text" and part["text"] for part in parts)
    if not fits:
        raise TeamRefusal("invalid_blocks")
    return len(told)


def check_buttons(block: dict[str, Any]) -> list[str]:
    if block["type"] != "actions":
        return []
    elements: list[dict[str, Any]] = block["elements"]
    if not 0 < len(elements) <= MOST_ELEMENTS:
        raise TeamRefusal("invalid_blocks")
    for each in elements:
        label, value = each["text"]["text"], each["value"]
        fits = 0 < len(label) <= BUTTON_CHARACTERS and 0 < len(value) <= VALUE_CHARACTERS
        if not fits or each["type"] != "button" or each["text"]["type"] != "plain_text":
            raise TeamRefusal("invalid_blocks")
    return [each["action_id"] for each in elements]


@method("auth.test")
def auth_test(team: "Workspace", _: TeamCall) -> dict[str, Any]:
    return {
        "team_id": team.team_id,
        "team": "Team",
        "user_id": team.user_id,
        "user": "frontdesk",
        "bot_id": team.bot_id,
    }


@method("apps.connections.open")
def open_connection(team: "Workspace", _: TeamCall) -> dict[str, Any]:
    if not team.socket_mode:
        raise TeamRefusal("forbidden_team")
    return {"url": team.socket_url()}


@method("chat.postMessage")
def post_message(team: "Workspace", call: TeamCall) -> dict[str, Any]:
    chat = find_chat(team, call)
    text, blocks = read_text(call, POST_CHARACTERS)
    thread = call.fields.get("thread_ts")
    if thread is not None and thread not in team.messages[chat.id]:
        raise TeamRefusal("thread_not_found")
    metadata = call.fields.get("metadata")
    post = TeamPost(channel=chat.id, ts=team.stamp(), text=text, blocks=blocks or [], thread_ts=thread)
    post.metadata = metadata
    team.add(post)
    return {"channel": chat.id, "ts": post.ts}


@method("chat.update")
def update_message(team: "Workspace", call: TeamCall) -> dict[str, Any]:
    chat = find_chat(team, call)
    text, blocks = read_text(call, UPDATE_CHARACTERS)
    post = own_post(team, chat, call)
    if post.streams:
        raise TeamRefusal("streaming_state_conflict")
    post.text, post.edits = text, post.edits + 1
    post.blocks = post.blocks if blocks is None else blocks
    post.metadata = call.fields.get("metadata") or post.metadata
    team.messages[chat.id][post.ts] |= {"text": text, "metadata": post.metadata}
    return {"channel": chat.id, "ts": post.ts}


def own_post(team: "Workspace", chat: TeamChat, call: TeamCall) -> TeamPost:
    needed(call, "ts")
    for post in team.posts:
        if (post.channel, post.ts) == (chat.id, call.fields["ts"]):
            return post
    known = call.fields["ts"] in team.messages[chat.id]
    raise TeamRefusal("cant_update_message" if known else "message_not_found")


def read_stream(call: TeamCall) -> str:
    """What is to be added to a stream, in Markdown."""
    text = str(call.fields.get("markdown_text") or "")
    if len(text) > STREAM_CHARACTERS:
        raise TeamRefusal("msg_too_long")
    if "<" in text:
        raise AssertionError(f"somebody may be called by a stream: {text!r}")
    return text


@method("chat.startStream")
def start_stream(team: "Workspace", call: TeamCall) -> dict[str, Any]:
    chat, thread = find_chat(team, call), call.fields.get("thread_ts")
    if "chat:write" not in team.scopes:
        raise TeamRefusal("missing_scope")
    if chat.kind == "im" and not thread:
        raise TeamRefusal("invalid_thread_ts")
    if chat.kind != "im":
        for name in ("recipient_user_id", "recipient_team_id"):
            if not call.fields.get(name):
                raise TeamRefusal(f"missing_{name}")
    if thread and thread not in team.messages[chat.id]:
        raise TeamRefusal("thread_not_found")
    text = read_stream(call)
    post = TeamPost(channel=chat.id, ts=team.stamp(), text=text, thread_ts=thread, streams=True)
    team.add(post)
    return {"channel": chat.id, "ts": post.ts}


def open_stream(team: "Workspace", call: TeamCall) -> TeamPost:
    post = own_post(team, find_chat(team, call), call)
    if not post.streams:
        raise TeamRefusal("stopped_by_user" if post.is_stopped else "message_not_in_streaming_state")
    return post


@method("chat.appendStream")
def append_stream(team: "Workspace", call: TeamCall) -> dict[str, Any]:
    post = open_stream(team, call)
    needed(call, "markdown_text")
    post.text += read_stream(call)
    return {"channel": post.channel, "ts": post.ts}


@method("chat.stopStream")
def stop_stream(team: "Workspace", call: TeamCall) -> dict[str, Any]:
    post = open_stream(team, call)
    post.text, post.streams = post.text + read_stream(call), False
    return {"channel": post.channel, "ts": post.ts}


@method("reactions.add")
def add_reaction(team: "Workspace", call: TeamCall) -> dict[str, Any]:
    chat = find_chat(team, call)
    needed(call, "timestamp", "name")
    if not NAME.fullmatch(call.fields["name"]):
        raise TeamRefusal("invalid_name")
    if call.fields["timestamp"] not in team.messages[chat.id]:
        raise TeamRefusal("message_not_found")
    put = (chat.id, call.fields["timestamp"], call.fields["name"])
    if put in team.signs:
        raise TeamRefusal("already_reacted")
    team.signs.append(put)
    return {}


@method("reactions.remove")
def remove_reaction(team: "Workspace", call: TeamCall) -> dict[str, Any]:
    chat = find_chat(team, call)
    needed(call, "timestamp", "name")
    put = (chat.id, call.fields["timestamp"], call.fields["name"])
    if put not in team.signs:
        raise TeamRefusal("no_reaction")
    team.signs.remove(put)
    return {}


@method("assistant.threads.setStatus")
def set_status(team: "Workspace", call: TeamCall) -> dict[str, Any]:
    chat = find_chat(team, call, "channel_id")
    needed(call, "thread_ts")
    team.statuses.append((chat.id, call.fields["thread_ts"], call.fields.get("status", "")))
    return {}


@method("conversations.info")
def chat_info(team: "Workspace", call: TeamCall) -> dict[str, Any]:
    chat = team.chats.get(str(call.fields.get("channel")))
    if chat is None:
        raise TeamRefusal("channel_not_found")
    return {"channel": chat.told()}


@method("bots.info")
def bot_info(team: "Workspace", call: TeamCall) -> dict[str, Any]:
    if "users:read" not in team.scopes:
        raise TeamRefusal("missing_scope")
    if call.fields.get("bot") != team.bot_id:
        raise TeamRefusal("bot_not_found")
    return {"bot": {"id": team.bot_id, "app_id": team.app_id, "name": "frontdesk"}}


@method("users.info")
def user_info(team: "Workspace", call: TeamCall) -> dict[str, Any]:
    needed(call, "user")
    if "users:read" not in team.scopes:
        raise TeamRefusal("missing_scope")
    user = call.fields["user"]
    if user == "U0NOBODY":
        raise TeamRefusal("user_not_found")
    profile = {"display_name": "", "real_name": team.names.get(user, user)}
    return {"user": {"id": user, "team_id": team.team_id, "name": user.lower(), "profile": profile}}


@method("users.conversations")
def our_chats(team: "Workspace", call: TeamCall) -> dict[str, Any]:
    kinds = set(str(call.fields.get("types", "public_channel")).split(","))
    names = {"channel": "public_channel", "group": "private_channel"}
    found = [each for each in team.chats.values() if each.is_member and not each.is_archived]
    return page(call, "channels", [each.told() for each in found if names.get(each.kind, each.kind) in kinds])


@method("conversations.history")
def history(team: "Workspace", call: TeamCall) -> dict[str, Any]:
    chat = find_chat(team, call, to_write=False)
    said = [
        each for each in team.history(chat.id, call.fields) if each.get("thread_ts") in (None, each["ts"])
    ]
    return page(call, "messages", list(reversed(said)))


@method("conversations.replies")
def replies(team: "Workspace", call: TeamCall) -> dict[str, Any]:
    chat = find_chat(team, call, to_write=False)
    needed(call, "ts")
    root = call.fields["ts"]
    if root not in team.messages[chat.id]:
        raise TeamRefusal("thread_not_found")
    said = [each for each in team.history(chat.id, call.fields) if each.get("thread_ts") == root]
    first = [each for each in team.history(chat.id, {}) if each["ts"] == root]
    return page(call, "messages", first + [each for each in said if each["ts"] != root])


def page(call: TeamCall, name: str, found: list[dict[str, Any]]) -> dict[str, Any]:
    limit, begin = int(call.fields.get("limit", 100)), int(call.fields.get("cursor") or 0)
    if not 0 < limit <= MOST_PAGE:
        raise TeamRefusal("invalid_limit")
    end = begin + limit
    more = {"next_cursor": str(end) if end < len(found) else ""}
    return {name: found[begin:end], "has_more": end < len(found), "response_metadata": more}


@method("files.info")
def file_info(team: "Workspace", call: TeamCall) -> dict[str, Any]:
    file = team.files.get(str(call.fields.get("file")))
    if file is None:
        raise TeamRefusal("file_not_found")
    return {"file": team.told_file(file)}


@method("files.getUploadURLExternal")
def upload_place(team: "Workspace", call: TeamCall) -> dict[str, Any]:
    needed(call, "filename", "length")
    name = call.fields["filename"]
    file = TeamFile(id=team.number("F"), name=name, kind=mimetypes.guess_type(name)[0] or UNKNOWN_KIND)
    team.files[file.id] = file
    team.expected[file.id] = int(call.fields["length"])
    return {"upload_url": f"{team.origin}/upload/{file.id}", "file_id": file.id}


@method("files.completeUploadExternal")
def complete_upload(team: "Workspace", call: TeamCall) -> dict[str, Any]:
    chat = find_chat(team, call, "channel_id")
    shared = [team.files.get(each["id"]) for each in call.fields.get("files", [])]
    if not shared or any(each is None or each.is_shared or not each.data for each in shared):
        raise TeamRefusal("invalid_arguments")
    files = tuple(each for each in shared if each is not None)
    for each in files:
        each.is_shared = True
    team.add(
        TeamPost(
            channel=chat.id, ts=team.stamp(), text="", thread_ts=call.fields.get("thread_ts"), files=files
        )
    )
    return {"files": [{"id": each.id} for each in files]}
