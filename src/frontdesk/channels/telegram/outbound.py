"""What goes out: an answer as a message, changed in its place while it grows, with buttons and files."""

from contextlib import ExitStack
from io import FileIO
from typing import Any

import msgspec
from telegram import (
    InlineKeyboardButton,
    InputFile,
    InputMediaDocument,
    InputMediaPhoto,
    LinkPreviewOptions,
    ReactionTypeEmoji,
    ReplyParameters,
)
from telegram import InlineKeyboardMarkup as Keyboard
from telegram.constants import ParseMode
from telegram.error import TelegramError

from frontdesk.channels.telegram.calls import Bot, CallRefused, judge
from frontdesk.channels.telegram.limits import CAPTION_UNITS, MOST_BUTTONS, MOST_FILES, TEXT_UNITS
from frontdesk.formats.markdown import chat_html
from frontdesk.model import deliveries
from frontdesk.model.chats import Button, ChatSign, StoredFile, TextUnit
from frontdesk.model.deliveries import Delivery, NotSent, Outcome, Sent, Unknown
from frontdesk.model.sources import ChatType, SessionSource, readable

BUTTON_CHARACTERS = 64
SHORT_BUTTON_CHARACTERS = 20
BUTTONS_IN_A_ROW = 2
MOST_PHOTO_BYTES = 10_000_000
GENERAL_TOPIC = "1"
"""The topic that a forum has from its beginning: messages to it name no topic."""
PHOTOS = frozenset({"image/jpeg", "image/png", "image/webp"})
SIGNS = {ChatSign.SEEN: "👀", ChatSign.WORKING: "✍", ChatSign.DONE: "👌", ChatSign.FAILED: "💔"}
"""Of the few reactions that a bot may give."""
UNREADABLE = ("can't parse entities", "entity_bounds_invalid")
UNCHANGED = "message is not modified"
GONE = (
    "message to edit not found",
    "message can't be edited",
    "message_id_invalid",
    "no text in the message",
)
NO_TOPIC = ("message thread not found", "topic_deleted", "topic_closed")
NO_PICTURE = (
    "image_process_failed",
    "photo_invalid",
    "photo_save_file_invalid",
    "wrong type of the web page",
)
NO_PREVIEW = LinkPreviewOptions(is_disabled=True)
"""A preview has the platform open each address that an agent writes."""


class Letter(msgspec.Struct, frozen=True, kw_only=True):
    """A delivery, ready to be sent."""

    chat: int | str
    text: str
    markup: str | None = None
    """The text with marks that the platform reads, if it is to have any."""
    thread: int | None = None
    reply_to: int | None = None
    buttons: tuple[Button, ...] = ()

    @property
    def written(self) -> dict[str, Any]:
        if self.markup is None:
            return {"text": self.text}
        return {"text": self.markup, "parse_mode": ParseMode.HTML}

    @property
    def captioned(self) -> dict[str, Any]:
        written = self.written
        return {"caption": written.pop("text"), **written} if self.text else {}

    @property
    def place(self) -> dict[str, Any]:
        place: dict[str, Any] = {"chat_id": self.chat, "message_thread_id": self.thread}
        if self.reply_to is not None:
            place["reply_parameters"] = ReplyParameters(self.reply_to, allow_sending_without_reply=True)
        return place

    @property
    def keyboard(self) -> Keyboard | None:
        return keyboard(self.buttons)


def letter(delivery: Delivery) -> Letter:
    to, text = delivery.to, readable(delivery.text)
    grouped = to.chat_type is not ChatType.DM
    markup = chat_html.render(text, TEXT_UNITS) if delivery.is_markdown else None
    return Letter(
        chat=chat_number(to),
        text=text if markup is None else chat_html.visible(markup),
        markup=markup,
        thread=thread_number(to),
        reply_to=_number(to.message_id) if grouped else None,
        buttons=delivery.buttons,
    )


def chat_number(to: SessionSource) -> int | str:
    number = _number(to.chat_id)
    return to.chat_id if number is None else number


def thread_number(to: SessionSource) -> int | None:
    return None if to.thread_id == GENERAL_TOPIC else _number(to.thread_id)


def _number(text: str | None) -> int | None:
    digits = (text or "").removeprefix("-")
    return int(text or "") if digits.isascii() and digits.isdigit() else None


def keyboard(buttons: tuple[Button, ...]) -> Keyboard | None:
    """Short buttons stand side by side, long ones below each other."""
    if not buttons:
        return None
    made = [
        InlineKeyboardButton(each.label[:BUTTON_CHARACTERS].strip() or "·", callback_data=each.token)
        for each in buttons[:MOST_BUTTONS]
    ]
    short = all(len(each.text) <= SHORT_BUTTON_CHARACTERS for each in made)
    width = BUTTONS_IN_A_ROW if short else 1
    return Keyboard([made[at : at + width] for at in range(0, len(made), width)])


async def send(bot: Bot, delivery: Delivery) -> Outcome:
    """Take a delivery to its chat: in the place of a draft, if it has one that is still there."""
    written = letter(delivery)
    if not written.text.strip() and not delivery.files:
        return NotSent(why="there is nothing in it", hopeless=True)
    if delivery.draft:
        return await _replace(bot, delivery, written)
    if not delivery.files:
        return await _tell(bot, written)
    if TextUnit.UTF16.length(written.text) <= CAPTION_UNITS:
        return await _bring(bot, written, delivery.files)
    return await _with_files(bot, await _tell(bot, written), written, delivery.files)


async def _replace(bot: Bot, delivery: Delivery, written: Letter) -> Outcome:
    try:
        number = int(delivery.draft or "")
    except ValueError:
        return NotSent(why="the id of the message to change is none", hopeless=True)
    outcome = await _change(bot, written, number)
    if outcome is None:
        return NotSent(why="the message to change is gone", gone=True)
    return await _with_files(bot, outcome, written, delivery.files)


async def _with_files(bot: Bot, told: Outcome, written: Letter, files: tuple[StoredFile, ...]) -> Outcome:
    """The files after their text has arrived. What went wrong from here on is not the whole of it."""
    if not files or not isinstance(told, Sent):
        return told
    alone = msgspec.structs.replace(written, text="", markup=None, buttons=())
    outcome = await _bring(bot, alone, files)
    if isinstance(outcome, Sent):
        return told
    return Unknown(why=f"the text arrived, its files may not have: {outcome.why}")


async def _change(bot: Bot, written: Letter, number: int) -> Outcome | None:
    """Change a message; None when it is gone."""
    try:
        await bot.call(
            "editMessageText",
            chat_id=written.chat,
            message_id=number,
            reply_markup=written.keyboard,
            link_preview_options=NO_PREVIEW,
            **written.written,
        )
    except TelegramError as error:
        if isinstance(error, CallRefused):
            if error.says(UNCHANGED):
                return Sent(message_id=str(number))
            if error.says(*GONE):
                return None
            if other := _otherwise(error, written):
                return await _change(bot, other, number)
        return judge(error)
    return Sent(message_id=str(number))


async def _tell(bot: Bot, written: Letter) -> Outcome:
    try:
        message = await bot.call(
            "sendMessage",
            reply_markup=written.keyboard,
            link_preview_options=NO_PREVIEW,
            **written.place,
            **written.written,
        )
    except TelegramError as error:
        if other := _otherwise(error, written):
            return await _tell(bot, other)
        return judge(error)
    return _sent(message)


def _sent(message: Any) -> Sent:
    number = message.get("message_id") if isinstance(message, dict) else None
    return Sent(message_id=str(number) if isinstance(number, int) else None)


def _otherwise(error: TelegramError, written: Letter) -> Letter | None:
    """The letter as it can be sent after all; each change is made once, and only after a clear no."""
    if not isinstance(error, CallRefused):
        return None
    if error.moved_to is not None and error.moved_to != written.chat:
        return msgspec.structs.replace(written, chat=error.moved_to, thread=None, reply_to=None)
    if written.thread is not None and error.says(*NO_TOPIC):
        return msgspec.structs.replace(written, thread=None)
    if written.markup is not None and error.says(*UNREADABLE):
        return msgspec.structs.replace(written, markup=None)
    return None


async def _bring(bot: Bot, written: Letter, files: tuple[StoredFile, ...]) -> Outcome:
    """Files in one message, with the text under them."""
    shown = all(each.kind in PHOTOS and each.size <= MOST_PHOTO_BYTES for each in files)
    while True:
        try:
            with ExitStack() as opened:
                return await (_album if len(files) > 1 else _single)(bot, written, files, shown, opened)
        except OSError as error:
            return NotSent(why=f"the file cannot be read: {error.strerror}", hopeless=True)
        except TelegramError as error:
            if shown and isinstance(error, CallRefused) and error.says(*NO_PICTURE):
                shown = False
            elif other := _otherwise(error, written):
                written = other
            else:
                return judge(error)


FIELDS = {"audio/ogg": "voice", "audio/mpeg": "audio", "audio/mp4": "audio", "video/mp4": "video"}
"""What files are sent as that are more than files."""


async def _single(
    bot: Bot, written: Letter, files: tuple[StoredFile, ...], shown: bool, opened: ExitStack
) -> Sent:
    (file,) = files
    field = "photo" if shown else FIELDS.get(file.kind, "document")
    upload = {field: _upload(file, opened), "reply_markup": written.keyboard}
    message = await bot.call(f"send{field.capitalize()}", **upload, **written.place, **written.captioned)
    return _sent(message)


async def _album(
    bot: Bot, written: Letter, files: tuple[StoredFile, ...], shown: bool, opened: ExitStack
) -> Sent:
    kind = InputMediaPhoto if shown else InputMediaDocument
    first, *others = [_upload(file, opened) for file in files[:MOST_FILES]]
    media = [kind(first, **written.captioned), *(kind(each) for each in others)]
    messages = await bot.call("sendMediaGroup", media=media, **written.place)
    return _sent(messages[0] if isinstance(messages, list) and messages else None)


def _upload(file: StoredFile, opened: ExitStack) -> InputFile:
    """The file as it is read while it is sent: large ones are never whole in memory."""
    if file.path is None:
        raise FileNotFoundError(2, "it is not here")
    handle = opened.enter_context(FileIO(file.path))
    return InputFile(handle, filename=file.name, attach=True, read_file_handle=False)


async def sign(bot: Bot, to: SessionSource, shown: ChatSign) -> Outcome:
    """Show that we write, or put a reaction to the message."""
    chat, number = chat_number(to), _number(to.message_id)
    try:
        if shown is ChatSign.TYPING:
            await bot.call(
                "sendChatAction", chat_id=chat, action="typing", message_thread_id=thread_number(to)
            )
        elif number is not None:
            sign = [ReactionTypeEmoji(SIGNS[shown])]
            await bot.call("setMessageReaction", chat_id=chat, message_id=number, reaction=sign)
        else:
            return NotSent(why="there is no message to put it to", hopeless=True)
    except TelegramError as error:
        return judge(error)
    return Sent()


def without_extras(delivery: deliveries.Delivery) -> deliveries.Delivery:
    """An answer that is still being written, as text alone."""
    return msgspec.structs.replace(delivery, buttons=(), files=())
