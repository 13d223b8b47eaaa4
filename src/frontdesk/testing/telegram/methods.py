"""What the Bot API does for each method, and what it refuses."""

import json
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from frontdesk.testing.telegram import markup
from frontdesk.testing.telegram.chats import REACTIONS, ApiCall, Chat, Post
from frontdesk.testing.telegram.markup import ApiRefusal, bad
from frontdesk.testing.wire import Upload

if TYPE_CHECKING:
    from frontdesk.testing.telegram.server import BotApi

Method = Callable[["BotApi", ApiCall], Awaitable[Any]]
METHODS: dict[str, Method] = {}
"""By name in lower case: the Bot API does not look at case."""
MOST_DOWNLOAD_BYTES = 20_000_000
MOST_UPLOAD_BYTES = 50_000_000
MOST_PHOTO_BYTES = 10_000_000
ALERT_CHARACTERS = 200
ALBUM = range(2, 11)
SECRET_CHARACTERS = 256
ACTIONS = {"typing", "upload_photo", "record_voice", "upload_voice", "upload_document", "choose_sticker"}
UNCHANGED = (
    "message is not modified: specified new message content and reply markup are exactly the same as a"
    " current content and reply markup of the message"
)
TOO_OLD = "query is too old and response timeout expired or query ID is invalid"


def method(name: str) -> Callable[[Method], Method]:
    def keep(function: Method) -> Method:
        METHODS[name.lower()] = function
        return function

    return keep


def needed(call: ApiCall, name: str) -> str:
    if not call.fields.get(name):
        raise bad(f"{name.replace('_', ' ')} is empty")
    return call.fields[name]


def find_chat(api: "BotApi", call: ApiCall) -> Chat:
    """The chat that a call names, if the bot may write there now."""
    try:
        chat = api.chats.get(int(needed(call, "chat_id")))
    except ValueError:
        chat = None
    if chat is None:
        raise bad("chat not found")
    if chat.waits_until > time.monotonic():
        api.impatient.append(call)
        left = int(chat.waits_until - time.monotonic()) + 1
        raise ApiRefusal(429, f"Too Many Requests: retry after {left}", {"retry_after": left})
    if chat.blocked:
        raise ApiRefusal(403, "Forbidden: bot was blocked by the user")
    if chat.migrated_to is not None:
        moved = {"migrate_to_chat_id": chat.migrated_to}
        raise ApiRefusal(400, "Bad Request: group chat was upgraded to a supergroup chat", moved)
    return chat


def find_thread(call: ApiCall, chat: Chat) -> int | None:
    if not call.fields.get("message_thread_id"):
        return None
    thread = int(call.fields["message_thread_id"])
    if thread in chat.topics:
        return thread
    if chat.type == "private":
        return None
    raise bad("message thread not found")


def find_replied(api: "BotApi", call: ApiCall, chat: Chat) -> int | None:
    if not call.fields.get("reply_parameters"):
        return None
    wanted = json.loads(call.fields["reply_parameters"])
    if api.knows(chat.id, wanted["message_id"]):
        return int(wanted["message_id"])
    if wanted.get("allow_sending_without_reply"):
        return None
    raise bad("message to be replied not found")


def find_post(api: "BotApi", call: ApiCall) -> Post:
    chat, number = find_chat(api, call), int(needed(call, "message_id"))
    for post in api.posts:
        if (post.chat_id, post.message_id) == (chat.id, number):
            return post
    raise bad("message to edit not found")


def posted(api: "BotApi", call: ApiCall, chat: Chat, shown: markup.Shown, *files: Upload) -> dict[str, Any]:
    post = Post(
        chat_id=chat.id,
        message_id=0,
        text=shown.text,
        thread_id=find_thread(call, chat),
        entities=shown.entities,
        buttons=markup.read_buttons(call.fields),
        reply_to=find_replied(api, call, chat),
        files=files,
        how=call.method,
    )
    post.message_id = api.next_message_id(chat.id)
    api.posts.append(post)
    return api.told(post)


@method("getMe")
async def get_me(api: "BotApi", _: ApiCall) -> Any:
    return api.me.told() | {
        "can_join_groups": True,
        "can_read_all_group_messages": api.can_read_all,
        "supports_inline_queries": False,
    }


@method("getUpdates")
async def get_updates(api: "BotApi", call: ApiCall) -> Any:
    return await api.updates(call.fields)


@method("setWebhook")
async def set_webhook(api: "BotApi", call: ApiCall) -> Any:
    url, secret = needed(call, "url"), call.fields.get("secret_token", "")
    if not url.startswith(("https://", "http://127.0.0.1")):
        raise bad("bad webhook: An HTTPS URL must be provided for webhook")
    allowed = secret.replace("_", "").replace("-", "")
    if secret and not (len(secret) <= SECRET_CHARACTERS and allowed.isascii() and allowed.isalnum()):
        raise bad("secret token contains unallowed characters")
    if call.fields.get("allowed_updates"):
        api.allowed = frozenset(json.loads(call.fields["allowed_updates"]))
    await api.stop_pushing()
    api.webhook_url, api.webhook_secret = url, secret or None
    api.start_pushing()
    return True


@method("deleteWebhook")
async def delete_webhook(api: "BotApi", call: ApiCall) -> Any:
    await api.stop_pushing()
    api.webhook_url, api.webhook_secret = "", None
    if call.fields.get("drop_pending_updates") == "true":
        api.pending.clear()
    return True


@method("getWebhookInfo")
async def get_webhook_info(api: "BotApi", _: ApiCall) -> Any:
    info: dict[str, Any] = {
        "url": api.webhook_url,
        "has_custom_certificate": False,
        "pending_update_count": len(api.pending),
    }
    if api.webhook_error:
        info |= {"last_error_date": int(time.time()), "last_error_message": api.webhook_error}
    return info


@method("getChat")
async def get_chat(api: "BotApi", call: ApiCall) -> Any:
    return find_chat(api, call).told() | {"accent_color_id": 0, "max_reaction_count": 11}


@method("setMyCommands")
async def set_my_commands(api: "BotApi", call: ApiCall) -> Any:
    api.commands = json.loads(needed(call, "commands"))
    return True


@method("sendMessage")
async def send_message(api: "BotApi", call: ApiCall) -> Any:
    chat = find_chat(api, call)
    return posted(api, call, chat, markup.read_text(call.fields))


@method("editMessageText")
async def edit_message_text(api: "BotApi", call: ApiCall) -> Any:
    post, shown = find_post(api, call), markup.read_text(call.fields)
    if post.files:
        raise bad("there is no text in the message to edit")
    buttons = markup.read_buttons(call.fields)
    if (post.text, post.entities, post.buttons) == (shown.text, shown.entities, buttons):
        raise bad(UNCHANGED)
    post.text, post.entities, post.buttons = shown.text, shown.entities, buttons
    post.edits += 1
    return api.told(post)


@method("deleteMessage")
async def delete_message(api: "BotApi", call: ApiCall) -> Any:
    try:
        api.posts.remove(find_post(api, call))
    except ApiRefusal as refused:
        raise bad("message to delete not found") from refused
    return True


@method("sendChatAction")
async def send_chat_action(api: "BotApi", call: ApiCall) -> Any:
    chat, action = find_chat(api, call), needed(call, "action")
    if action not in ACTIONS:
        raise bad("wrong parameter action in request")
    thread = int(call.fields.get("message_thread_id") or 0) or None
    if thread is not None and thread not in chat.topics | {1}:
        raise bad("message thread not found")
    api.actions.append((chat.id, thread, action))
    return True


@method("setMessageReaction")
async def set_message_reaction(api: "BotApi", call: ApiCall) -> Any:
    chat, number = find_chat(api, call), int(needed(call, "message_id"))
    signs = tuple(each["emoji"] for each in json.loads(call.fields.get("reaction") or "[]"))
    if not api.knows(chat.id, number):
        raise bad("message to react not found")
    if len(signs) > 1 or not set(signs) <= set(REACTIONS.split()):
        raise bad("REACTION_INVALID")
    api.signs[chat.id, number] = signs
    return True


@method("answerCallbackQuery")
async def answer_callback_query(api: "BotApi", call: ApiCall) -> Any:
    query = needed(call, "callback_query_id")
    if query not in api.queries:
        raise bad(TOO_OLD)
    if len(call.fields.get("text", "")) > ALERT_CHARACTERS:
        raise bad("MESSAGE_TOO_LONG")
    api.queries[query] = call.fields
    return True


@method("getFile")
async def get_file(api: "BotApi", call: ApiCall) -> Any:
    name = needed(call, "file_id")
    file = api.kept_files.get(name)
    if file is None:
        raise bad("invalid file_id")
    if len(file.data) > MOST_DOWNLOAD_BYTES:
        raise bad("file is too big")
    return {
        "file_id": name,
        "file_unique_id": name[-8:],
        "file_size": len(file.data),
        "file_path": f"documents/{name}",
    }


def uploaded(call: ApiCall, where: str, most: int) -> Upload:
    """The file that a field holds, or names with attach://."""
    name = call.fields.get(where, "").removeprefix("attach://") or where
    file = call.uploads.get(name)
    if file is None:
        raise bad("wrong HTTP URL specified, or there is no file in the request")
    if not file.data:
        raise bad("file must be non-empty")
    if len(file.data) > most:
        raise ApiRefusal(413, "Request Entity Too Large")
    return file


def sends_a_file(field: str, most: int = MOST_UPLOAD_BYTES) -> Method:
    async def send(api: "BotApi", call: ApiCall) -> Any:
        chat, file = find_chat(api, call), uploaded(call, field, most)
        if field == "photo" and not file.kind.startswith("image/"):
            raise bad("IMAGE_PROCESS_FAILED")
        kept = api.keep_file(file.name, file.data, file.kind)
        told = posted(api, call, chat, markup.read_text(call.fields, "caption"), file)
        told.pop("text")
        size: dict[str, Any] = {"width": 1, "height": 1} if field in ("photo", "video") else {}
        length: dict[str, Any] = {"duration": 1} if field in ("voice", "audio", "video") else {}
        entry = kept | size | length
        return told | {"caption": told.get("caption", ""), field: [entry] if field == "photo" else entry}

    return send


for _field in ("document", "voice", "audio", "video"):
    METHODS[f"send{_field}"] = sends_a_file(_field)
METHODS["sendphoto"] = sends_a_file("photo", MOST_PHOTO_BYTES)


@method("sendMediaGroup")
async def send_media_group(api: "BotApi", call: ApiCall) -> Any:
    chat, media = find_chat(api, call), json.loads(needed(call, "media"))
    if len(media) not in ALBUM:
        raise bad("wrong number of media: expected from 2 to 10")
    told = []
    for each in media:
        part = ApiCall(method=call.method, fields=call.fields | each, uploads=call.uploads, token=call.token)
        file = uploaded(part, "media", MOST_UPLOAD_BYTES)
        shown = markup.read_text(part.fields, "caption")
        entry = api.keep_file(file.name, file.data, file.kind)
        message = posted(api, part, chat, shown, file)
        message.pop("text")
        told.append(message | {"media_group_id": "1", "document": entry})
    return told
