"""What can be found out about an app: who it is, what it may do, and whether it hears us."""

import asyncio
import re
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING

from frontdesk import errors
from frontdesk.channels import clocks
from frontdesk.channels.slack import inbound
from frontdesk.channels.slack.connect import MANIFEST
from frontdesk.channels.slack.faults import TOKEN_REFUSED, SlackError, SlackRefusal
from frontdesk.channels.slack.names import NameBook
from frontdesk.channels.slack.options import Options
from frontdesk.channels.slack.reading import KINDS
from frontdesk.channels.slack.socket import connections, read_envelope
from frontdesk.contracts.channels import Incoming
from frontdesk.contracts.setups import Newcomer
from frontdesk.model import findings
from frontdesk.model.findings import Finding
from frontdesk.model.sources import ChatType

if TYPE_CHECKING:
    from frontdesk.channels.slack.calls import SlackLine

NAME_CHARACTERS = 100
GREETING_SECONDS = 5.0
PAUSE_SECONDS = 1.0
APP = re.compile(r"xapp-\d+-(A[A-Z0-9]+)-")
SCOPES = frozenset(re.findall(r"- (?!message)([a-z_]+:[a-z]+)$", MANIFEST, re.MULTILINE))
"""What the app may do if it was made from our manifest."""
MISSING_SCOPES = "it lacks the scopes {scopes}: add them under OAuth & Permissions, and install the app again"
CALLED = "without an app-level token nobody can be seen who writes"
NO_SOCKET = (
    "Socket Mode does not work: {why}. The app-level token needs connections:write, and Socket Mode on"
)
NO_HISTORY = "what is said while the gateway is away cannot be read afterwards: {why}"
TWO_APPS = (
    "the tokens are of two apps: the bot token of {bot}, the app-level token of {socket}. Take both from one"
)
WHOLE_ORGANIZATION = (
    "it is installed for a whole organization: install it in one workspace, and set that token"
)
OTHERS = (
    "{others} more listen for this app, and each event goes to one of you: stop them, or make another app"
)
UNKNOWN_HOME = "the home channel {home} is not known to it: {why}"
NOT_AT_HOME = "it is not in the home channel {home}: /invite it there"


async def examine(line: "SlackLine", options: Options, home: str | None, in_use: bool) -> list[Finding]:
    try:
        told = await line.call("auth.test")
        name, team = (str(told.get(each))[:NAME_CHARACTERS] for each in ("user", "team"))
        found = [
            Finding(text=f"@{name} in {team}"),
            *clocks.compare(line.answered, "Slack's"),
            *_scopes(line),
        ]
        if told.get("is_enterprise_install") is True:
            found.append(findings.failed(WHOLE_ORGANIZATION))
        if options.app_token is not None:
            found += await _apps(line, told.get("bot_id"), options.app_token())
            found += await _socket(line, in_use)
        found += await _history(line)
        if home is not None:
            found += await _home(line, home)
    except errors.MissingSecret as error:
        return [findings.failed(str(error))]
    except SlackError as error:
        return [findings.failed(_why(error))]
    return found


async def meet(line: "SlackLine", options: Options) -> AsyncGenerator[Newcomer, None]:
    """People who write in private while we listen. Nothing is acknowledged: what they write comes again."""
    if options.app_token is None:
        raise errors.PlatformUnreachable(why=CALLED)
    known: set[str] = set()
    try:
        us = inbound.read_self(await line.call("auth.test"))
        parser, names = inbound.Parser(us or inbound.Self(team="", user=""), None), NameBook(line, None)
        while True:
            async with line.socket() as socket:
                async for message in socket:
                    written = _in_private(parser, read_envelope(message.data))
                    if written is not None and (user := written.source.user_id) and user not in known:
                        known.add(user)
                        name = (await names.named(written)).source.user_name or user
                        yield Newcomer(user_id=user, chat_id=written.source.chat_id, name=name)
            await asyncio.sleep(PAUSE_SECONDS)
    except (SlackError, errors.MissingSecret) as error:
        why = _why(error) if isinstance(error, SlackError) else str(error)
        raise errors.PlatformUnreachable(why=why) from error


def _in_private(parser: inbound.Parser, envelope: inbound.Table) -> Incoming | None:
    payload = inbound.table(envelope.get("payload"))
    happened = parser.event(payload.get("event")) if parser.concerns_us(payload) else None
    private = isinstance(happened, Incoming) and happened.source.chat_type is ChatType.DM
    return happened if private and isinstance(happened, Incoming) and not happened.source.is_bot else None


def _why(error: SlackError) -> str:
    if isinstance(error, SlackRefusal):
        return TOKEN_REFUSED if error.token_refused else f"Slack says: {error}"
    return f"Slack cannot be reached: {error}"


def _scopes(line: "SlackLine") -> list[Finding]:
    """The platform says with each answer what the token may do."""
    given = {each.strip() for each in line.scopes.split(",") if each.strip()}
    missing = sorted(SCOPES - given) if given else []
    return [findings.warning(MISSING_SCOPES.format(scopes=", ".join(missing)))] if missing else []


async def _apps(line: "SlackLine", bot: object, app_token: str) -> list[Finding]:
    """Whether both tokens are of one app; the app-level token names its own."""
    named = APP.match(app_token)
    try:
        told = await line.call("bots.info", bot=str(bot)) if named and inbound.is_id(bot) else {}
    except SlackRefusal as error:
        if error.token_refused:
            raise
        told = {}
    app = inbound.table(told.get("bot")).get("app_id")
    different = named is not None and inbound.is_id(app) and app != named[1]
    return [findings.failed(TWO_APPS.format(bot=app, socket=named[1]))] if different and named else []


async def _socket(line: "SlackLine", in_use: bool) -> list[Finding]:
    """Asking for an address changes nothing. Where no gateway of ours is connected, nobody else should be."""
    try:
        if in_use:
            await line.socket_address()
            return []
        async with line.socket() as socket:
            greeting = read_envelope((await socket.receive(timeout=GREETING_SECONDS)).data)
    except SlackRefusal as error:
        return [findings.failed(NO_SOCKET.format(why=error))]
    except TimeoutError:
        return [findings.failed(NO_SOCKET.format(why="nobody greets us"))]
    others = connections(greeting) - 1
    return [findings.warning(OTHERS.format(others=others))] if others > 0 else []


async def _history(line: "SlackLine") -> list[Finding]:
    """Whether what is said while nobody listens can be read afterwards, tried with one chat."""
    try:
        listed = (await line.call("users.conversations", types=KINDS, limit="1")).get("channels")
        for chat in listed if isinstance(listed, list) else ():
            await line.call("conversations.history", channel=str(inbound.table(chat).get("id")), limit="1")
    except SlackRefusal as error:
        if error.token_refused:
            raise
        return [findings.warning(NO_HISTORY.format(why=error))]
    return []


async def _home(line: "SlackLine", home: str) -> list[Finding]:
    try:
        told = await line.call("conversations.info", channel=home)
    except SlackRefusal as error:
        return [findings.failed(UNKNOWN_HOME.format(home=home, why=error))]
    chat = inbound.table(told.get("channel"))
    there = chat.get("is_im") is True or chat.get("is_member") is True
    return [] if there else [findings.failed(NOT_AT_HOME.format(home=home))]
