"""What can be found out about a bot: who it is, what it may do, who else uses it; and who writes to it."""

import asyncio
from collections.abc import AsyncGenerator
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from urllib.parse import urlsplit

import telegram
from telegram.constants import ChatType
from telegram.error import TelegramError

from frontdesk import errors
from frontdesk.channels import clocks
from frontdesk.channels.telegram import calls, inbound
from frontdesk.channels.telegram.options import Options
from frontdesk.contracts.channels import Incoming
from frontdesk.contracts.setups import Newcomer
from frontdesk.model import findings
from frontdesk.model.findings import Finding

CONFLICT_SECONDS = 3
"""How long it is waited for another program to ask for the same messages."""
MEET_SECONDS = 10
MOST_UPDATES = 100
PAUSE_SECONDS = 1.0
LATELY = timedelta(hours=1)
NAME_CHARACTERS = 100

PRIVACY = (
    "in groups it sees only what is addressed to it, since privacy mode is on. To change that: @BotFather,"
    " /setprivacy, Disable; then remove it from the group and add it again"
)
NO_GROUPS = "nobody can add it to a group. To change that: @BotFather, /setjoingroups"
SECOND = "another program asks for its messages, too: stop that one, or give it a bot of its own"
FOREIGN_WEBHOOK = "a webhook at {host} gets its messages: frontdesk takes that away when it starts"
LOST_WEBHOOK = "Telegram calls {host} and not our webhook: another program has set that"
UNSET_WEBHOOK = "the webhook is set when the gateway starts"
FAILING_WEBHOOK = (
    "Telegram cannot call us: {why}. It must reach {host} from outside, with a valid certificate"
)
UNKNOWN_HOME = (
    "the home channel {home} is not known to it. If that is you, write to the bot first; to a group, add it"
)
MUTE_AT_HOME = "it may not write in the home channel {home}: make it a member, or give it the right to post"
CROWDED = "so many messages wait for the bot that new ones cannot be seen: start the gateway, and pair people"


async def examine(bot: calls.Bot, options: Options, *, in_use: bool, home: str | None) -> list[Finding]:
    try:
        me = await bot.get_me()
        found = [Finding(text=_who(me)), *clocks.compare(bot.answered, "Telegram's"), *_groups(me)]
        info = await bot.get_webhook_info()
        found += _called(info, options, in_use)
        if home is not None:
            found += await _home(bot, me, home)
        if not (options.public_url or info.url or in_use):
            found += await _second(bot)
    except TelegramError as error:
        return [findings.failed(_why(error))]
    return found


def _why(error: TelegramError) -> str:
    if isinstance(error, calls.CallRefused):
        return calls.TOKEN_REFUSED if error.token_refused else f"Telegram says: {error}"
    return f"Telegram cannot be reached: {error}"


def _who(me: telegram.User) -> str:
    return f"@{me.username} ({me.full_name[:NAME_CHARACTERS]})"


def _groups(me: telegram.User) -> list[Finding]:
    if me.can_join_groups is False:
        return [findings.note(NO_GROUPS)]
    return [] if me.can_read_all_group_messages else [findings.note(PRIVACY)]


def _called(info: telegram.WebhookInfo, options: Options, in_use: bool) -> list[Finding]:
    """Whether it is us whom Telegram calls, if anybody. Of an address the host is told: the rest may be
    secret."""
    host = urlsplit(info.url).hostname or ""
    if not options.public_url:
        return [findings.warning(FOREIGN_WEBHOOK.format(host=host))] if info.url else []
    if info.url != options.public_url:
        lost = in_use and info.url
        return [findings.failed(LOST_WEBHOOK.format(host=host)) if lost else findings.note(UNSET_WEBHOOK)]
    failed_at = info.last_error_date
    if failed_at and datetime.now(UTC) - failed_at < LATELY:
        return [findings.warning(FAILING_WEBHOOK.format(why=info.last_error_message, host=host))]
    return []


async def _home(bot: calls.Bot, me: telegram.User, home: str) -> list[Finding]:
    try:
        chat = await bot.get_chat(home)
        if chat.type == ChatType.PRIVATE:
            return []
        member = await bot.get_chat_member(home, me.id)
    except calls.CallRefused as error:
        if error.status not in (HTTPStatus.BAD_REQUEST, HTTPStatus.FORBIDDEN):
            raise
        return [findings.failed(UNKNOWN_HOME.format(home=home))]
    return [] if _may_post(chat, member) else [findings.failed(MUTE_AT_HOME.format(home=home))]


def _may_post(chat: telegram.ChatFullInfo, member: telegram.ChatMember) -> bool:
    if isinstance(member, telegram.ChatMemberLeft | telegram.ChatMemberBanned):
        return False
    if isinstance(member, telegram.ChatMemberRestricted):
        return member.can_send_messages
    if chat.type == ChatType.CHANNEL:
        return isinstance(member, telegram.ChatMemberAdministrator) and bool(member.can_post_messages)
    return True


async def _second(bot: calls.Bot) -> list[Finding]:
    """Whether somebody else asks, too: whoever asks first is cut off then. Without an offset nothing is
    confirmed."""
    try:
        await bot.fetch_updates(None, CONFLICT_SECONDS, inbound.KINDS)
    except calls.CallRefused as error:
        if error.status != HTTPStatus.CONFLICT:
            raise
        return [findings.failed(SECOND)]
    return []


async def meet(bot: calls.Bot) -> AsyncGenerator[Newcomer, None]:
    """People who have written in private and whose messages wait; these are left where they are."""
    known: set[str] = set()
    try:
        found = await bot.get_me()
        me = inbound.Me(id=found.id, username=found.username or "")
        while True:
            updates = await bot.fetch_updates(None, MEET_SECONDS, inbound.KINDS)
            for newcomer in filter(None, (_newcomer(raw, me) for raw in updates)):
                if newcomer.user_id not in known:
                    known.add(newcomer.user_id)
                    yield newcomer
            if len(updates) >= MOST_UPDATES:
                raise errors.PlatformUnreachable(why=CROWDED)
            await asyncio.sleep(PAUSE_SECONDS)
    except TelegramError as error:
        raise errors.PlatformUnreachable(why=_why(error)) from error


def _newcomer(raw: object, me: inbound.Me) -> Newcomer | None:
    """Whoever wrote an update, if that is a person in a private chat."""
    try:
        happened = inbound.read_update(raw, None, me)
    except errors.InvalidInput:
        return None
    for each in happened.happenings:
        at = each.source
        if isinstance(each, Incoming) and at.user_id and not at.others_read and not at.is_bot:
            name = (at.user_name or at.user_id)[:NAME_CHARACTERS]
            return Newcomer(user_id=at.user_id, chat_id=at.chat_id, name=name)
    return None
