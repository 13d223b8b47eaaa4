"""One app in one workspace: what it hears over its socket or is called with, and what it says."""

import asyncio
import hashlib
import hmac
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

import msgspec

from frontdesk import errors, plugins
from frontdesk.channels import streams
from frontdesk.channels.called import CalledChannel, read_json
from frontdesk.channels.slack import checkup, inbound, outbound
from frontdesk.channels.slack import options as settings
from frontdesk.channels.slack.faults import TOKEN_REFUSED, SlackError, SlackRefusal
from frontdesk.channels.slack.reading import ChatReader
from frontdesk.channels.slack.socket import SocketListener
from frontdesk.channels.slack.streaming import AnswerStreams
from frontdesk.contracts import channels
from frontdesk.contracts.clock import Clock
from frontdesk.contracts.setups import Newcomer
from frontdesk.logs import get_logger
from frontdesk.model.chats import Attachment, ChatSign
from frontdesk.model.deliveries import Delivery, NotSent, Outcome
from frontdesk.model.findings import Finding
from frontdesk.model.platforms import Platform
from frontdesk.model.sources import SessionSource

if TYPE_CHECKING:
    from frontdesk.channels.slack.calls import SlackLine

plugins.need("slack_sdk", "aiohttp")

CALLS = "frontdesk.channels.slack.calls"
LOOK_SECONDS = 300.0
"""How often it is looked whether the token still holds, where the platform calls us."""
MOST_CALL_BYTES = 1024 * 1024
MOST_SKEW_SECONDS = 300
MOST_FIELDS = 100
LATER = {"retry-after": "5"}
IN_THREADS = 100.0
"""How long the platform shows that we are writing, which it does in threads alone."""

IN_CHATS = channels.Capabilities(
    text_limit=outbound.TEXT_CHARACTERS,
    edits=True,
    edit_pause_seconds=1.5,
    send_pause_seconds=1.0,
    most_buttons=outbound.MOST_BUTTONS,
    reactions=True,
    most_files=outbound.MOST_FILES,
    most_file_bytes=outbound.MOST_FILE_BYTES,
    reliable_sender_ids=True,
)
IN_A_THREAD = msgspec.structs.replace(IN_CHATS, typing_seconds=IN_THREADS)

log = get_logger(__name__)


class Channel(CalledChannel[settings.Options]):
    """An app called ``account``. With an app-level token we call the platform, else it calls us."""

    Options = settings.Options

    def __init__(
        self, options: settings.Options, account: str | None = None, *, clock: Clock | None = None
    ) -> None:
        super().__init__(Platform.SLACK, options, account, clock)
        self._line: streams.Lazily[SlackLine] = streams.Lazily(
            CALLS, lambda library: library.SlackLine(options)
        )
        self._reader: ChatReader | None = None
        self._parser: inbound.Parser | None = None
        self._trouble: str | None = None
        self._streams = AnswerStreams(self._stop)
        self.capabilities = msgspec.structs.replace(IN_CHATS, reads_alone=options.app_token is not None)

    def capabilities_in(self, chat: SessionSource) -> channels.Capabilities:
        return IN_A_THREAD if chat.thread_id else IN_CHATS

    @property
    def routes(self) -> Sequence[channels.Route]:
        if self._options.signing_secret is None:
            return []
        path = f"/channels/slack/{self.account}" if self.account else "/channels/slack"
        return [channels.Route(method="POST", path=path, handle=self._handle, max_body_bytes=MOST_CALL_BYTES)]

    def trouble(self) -> str | None:
        return self._trouble

    async def receive(self, desk: channels.Desk) -> None:
        try:
            line = await self._line.get()
            us = await self._meet(line)
            self._parser = inbound.Parser(us, self.account, self._options.threads)
            self._reader = ChatReader(line, desk, self._parser, self.account)
            if self._options.app_token is not None:
                await SocketListener(line, self._reader, self.hear, self._note).listen()
            await self._be_called(line, self._reader)
        finally:
            self._reader = self._parser = None

    async def send(self, delivery: Delivery) -> Outcome:
        return await self._with_line(self._send, delivery)

    async def draft(self, delivery: Delivery) -> Outcome:
        return await self._with_line(self._draft, outbound.without_extras(delivery))

    async def find(self, delivery: Delivery) -> Outcome:
        return await self._with_line(outbound.find, delivery)

    async def sign(self, to: SessionSource, sign: ChatSign) -> Outcome:
        return await self._with_line(outbound.sign, to, sign)

    async def fetch(self, attachment: Attachment, most_bytes: int) -> AsyncIterator[bytes]:
        """The bytes of a file; FileUnavailable when they cannot be had or are too many, FileLater when that
        may pass."""
        try:
            line = await self._line.get()
            about = inbound.table((await line.call("files.info", file=attachment.id)).get("file"))
            wanted = about.get("url_private_download") or about.get("url_private")
            pieces = line.download(wanted, attachment.kind == "text/html")
            async for piece in streams.at_most(pieces, most_bytes):
                yield piece
        except errors.MissingSecret as error:
            raise errors.FileUnavailable(why=str(error)) from error
        except SlackError as error:
            hopeless = isinstance(error, SlackRefusal) and error.wait is None
            raise (errors.FileUnavailable if hopeless else errors.FileLater)(why=error.why) from error

    async def examine(self, *, in_use: bool, home: str | None = None) -> list[Finding]:
        line = await self._line.get()
        return await checkup.examine(line, self._options, home, in_use)

    async def meet(self) -> AsyncGenerator[Newcomer, None]:
        async with aclosing(checkup.meet(await self._line.get(), self._options)) as newcomers:
            async for newcomer in newcomers:
                yield newcomer

    async def close(self) -> None:
        if line := self._line.take():
            await line.close()

    async def hear(self, kind: str, payload: object) -> None:
        """Hand over what the platform brings, of whatever kind; one of LATER when it is to come again."""
        assert self._reader is not None
        assert self._parser is not None
        if kind == "interactive":
            pressed = self._parser.press(payload)
            if pressed is not None:
                await self._reader.press(pressed)
            return
        told = inbound.table(payload)
        if not self._parser.concerns_us(told):
            log.warning("event_of_another_workspace", account=self.account, team=told.get("team_id"))
            return
        if kind == "slash_commands":
            happening: channels.Happening | None = self._parser.command(told, self._clock.now())
        else:
            happening = self._parser.event(told.get("event"))
        if happening is not None:
            await self._reader.take(happening)

    async def _send(self, line: "SlackLine", delivery: Delivery) -> Outcome:
        placed = await self._streams.found(line, delivery)
        await self._streams.end(line, placed)
        return await outbound.send(line, placed)

    async def _draft(self, line: "SlackLine", delivery: Delivery) -> Outcome:
        placed = await self._streams.found(line, delivery)
        return await self._streams.show(line, placed) or await self._send(line, placed)

    async def _stop(self, delivery: Delivery) -> None:
        """Somebody has used the platform's own button to stop an answer."""
        source = msgspec.structs.replace(delivery.to, message_id=None)
        event_id = f"{source.scope_id}:{source.chat_id}:{delivery.draft}:stopped"
        if self._reader is not None:
            try:
                await self._reader.press(channels.Incoming(source=source, text="/stop", event_id=event_id))
            except streams.LATER as error:
                log.warning("update_not_stored", account=self.account, why=str(error))

    async def _with_line(self, act: Any, *arguments: Any) -> Outcome:
        try:
            outcome: Outcome = await act(await self._line.get(), *arguments)
        except errors.MissingSecret as error:
            return NotSent(why=str(error))
        return outcome

    async def _meet(self, line: "SlackLine") -> inbound.Self:
        """Learn who we are, however long that takes."""
        pauses = streams.GrowingPauses()
        while True:
            try:
                us = inbound.read_self(await line.call("auth.test"))
                if us is not None:
                    self._trouble = None
                    return us
                self._note(SlackRefusal("the platform does not say who we are"))
            except (SlackError, errors.MissingSecret) as error:
                self._note(error)
            await pauses.wait()

    async def _be_called(self, line: "SlackLine", reader: ChatReader) -> None:
        """Read what we have missed, then wait to be called."""
        pauses = streams.GrowingPauses()
        while True:
            try:
                await reader.begin()
                break
            except streams.LATER as error:
                log.warning("update_not_stored", account=self.account, why=str(error))
                await pauses.wait()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(reader.catch_up())
            while True:
                await asyncio.sleep(LOOK_SECONDS)
                await self._meet(line)

    async def _handle(self, request: channels.Request) -> channels.Response:
        if self._reader is None or self._options.signing_secret is None:
            return channels.Response(status=HTTPStatus.SERVICE_UNAVAILABLE, headers=LATER)
        try:
            secret = self._options.signing_secret()
        except errors.MissingSecret:
            return channels.Response(status=HTTPStatus.SERVICE_UNAVAILABLE, headers=LATER)
        if not self._is_signed(request, secret):
            log.warning("webhook_refused", account=self.account, client=request.client)
            return channels.Response(status=HTTPStatus.UNAUTHORIZED)
        request.prove(f"{self.name} {self.account}")
        try:
            kind, payload = _read_call(request)
            if kind == "url_verification":
                challenge = str(inbound.table(payload).get("challenge") or "")[:1000]
                return channels.Response(status=HTTPStatus.OK, body=challenge.encode("utf-8", "replace"))
            await self.hear(kind, payload)
        except errors.InvalidInput as error:
            log.warning("update_unreadable", account=self.account, why=error)
        except streams.LATER as error:
            log.warning("update_not_stored", account=self.account, why=error)
            return channels.Response(status=HTTPStatus.SERVICE_UNAVAILABLE, headers=LATER)
        return channels.Response(status=HTTPStatus.OK)

    def _is_signed(self, request: channels.Request, secret: str) -> bool:
        """Whether the platform has sent it, a few minutes ago at most."""
        stamp = request.headers.get("x-slack-request-timestamp", "")
        if not (stamp.isascii() and stamp.isdigit() and len(stamp) <= len("253402300799")):
            return False
        if abs(self._clock.now().timestamp() - int(stamp)) > MOST_SKEW_SECONDS:
            return False
        signed = hmac.new(secret.encode(), f"v0:{stamp}:".encode() + request.body, hashlib.sha256)
        shown = request.headers.get("x-slack-signature", "")
        return hmac.compare_digest(shown.encode(), f"v0={signed.hexdigest()}".encode())

    def _note(self, error: SlackError | errors.MissingSecret | None) -> None:
        """Keep why nothing comes in, for whoever asks; None: it does."""
        if error is None:
            self._trouble = None
            return
        trouble = f"Slack cannot be reached: {error}"
        if isinstance(error, errors.MissingSecret):
            trouble = str(error)
        elif isinstance(error, SlackRefusal):
            trouble = TOKEN_REFUSED if error.token_refused else f"Slack says: {error}"
        if trouble != self._trouble:
            log.warning("channel_troubled", platform=self.name, account=self.account, why=trouble)
        self._trouble = trouble


def _read_call(request: channels.Request) -> tuple[str, object]:
    """What the platform calls us with: an event as JSON, a press or command as a form; else InvalidInput."""
    if request.headers.get("content-type", "").startswith("application/x-www-form-urlencoded"):
        try:
            fields = dict(parse_qsl(request.body.decode(), max_num_fields=MOST_FIELDS))
        except ValueError:
            raise errors.InvalidInput(what="The body", why="it is no form of valid Unicode") from None
        if "payload" in fields:
            return "interactive", read_json(object, fields["payload"].encode("utf-8", "replace"))
        return "slash_commands", fields
    payload = read_json(object, request.body)
    kind = inbound.table(payload).get("type")
    return ("url_verification" if kind == "url_verification" else "events_api"), payload
