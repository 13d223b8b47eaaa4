"""One bot at work: what is asked of the platform or brought by it, and what is sent."""

import asyncio
import hmac
from collections.abc import AsyncGenerator, Sequence
from http import HTTPStatus

from telegram.error import TelegramError

from frontdesk import errors
from frontdesk.channels import streams
from frontdesk.channels.called import read_json
from frontdesk.channels.telegram import calls, checkup, inbound, outbound
from frontdesk.channels.telegram.channel import LATER
from frontdesk.channels.telegram.options import Options
from frontdesk.contracts import channels
from frontdesk.contracts.setups import Newcomer
from frontdesk.logs import get_logger
from frontdesk.model import deliveries
from frontdesk.model.chats import Attachment, ChatSign
from frontdesk.model.findings import Finding
from frontdesk.model.platforms import Platform
from frontdesk.model.sources import SessionSource

log = get_logger(__name__)

PLATFORM = str(Platform.TELEGRAM)
MOST_HELD = 75
"""How many updates may be left with the platform, behind the first that could not be taken."""
CONFLICT_SECONDS = 2.0
"""How long another program that asks for the same messages is left alone."""
LOOK_SECONDS = 300.0
"""How often it is looked whether the platform still calls us."""
SECRET_HEADER = "x-telegram-bot-api-secret-token"

CONFLICT = (
    "another program asks Telegram for this bot's messages, or a webhook is set for it: stop the other one,"
    " or give it a bot of its own"
)


class BotConnection:
    """A bot called ``account``. Messages are asked for, or come as requests where a webhook is set."""

    def __init__(self, options: Options, account: str | None) -> None:
        self.account = account
        self.trouble: str | None = None
        """Why nothing comes in."""
        self._options = options
        self._bots = calls.Bots(options)
        self._desk: channels.Desk | None = None
        self._me: inbound.Me | None = None
        self._tasks: asyncio.TaskGroup | None = None
        self._called: tuple[str, str] | None = None

    async def receive(self, desk: channels.Desk) -> None:
        async with asyncio.TaskGroup() as tasks:
            self._tasks = tasks
            try:
                await self._meet()
                if self._options.public_url:
                    self._desk = desk
                    await self._stay_called()
                else:
                    await self._poll(desk)
            finally:
                self._tasks = self._desk = None

    async def send(self, delivery: deliveries.Delivery) -> deliveries.Outcome:
        try:
            return await outbound.send(await self._bots.now(), delivery)
        except errors.MissingSecret as error:
            return deliveries.NotSent(why=str(error))

    async def draft(self, delivery: deliveries.Delivery) -> deliveries.Outcome:
        return await self.send(outbound.without_extras(delivery))

    async def sign(self, to: SessionSource, sign: ChatSign) -> deliveries.Outcome:
        try:
            return await outbound.sign(await self._bots.now(), to, sign)
        except errors.MissingSecret as error:
            return deliveries.NotSent(why=str(error))

    async def fetch(self, attachment: Attachment, most_bytes: int) -> AsyncGenerator[bytes, None]:
        """The bytes of a file; FileUnavailable when they cannot be had or are too many, FileLater when that
        may pass."""
        try:
            bot = await self._bots.now()
            found = await bot.find_file(attachment.id)
            async for piece in streams.at_most(bot.fetch_file(found), most_bytes):
                yield piece
        except errors.MissingSecret as error:
            raise errors.FileUnavailable(why=str(error)) from error
        except TelegramError as error:
            verdict = calls.judge(error)
            hopeless = isinstance(verdict, deliveries.NotSent) and verdict.hopeless
            raise (errors.FileUnavailable if hopeless else errors.FileLater)(why=verdict.why) from error

    async def examine(self, *, in_use: bool, home: str | None = None) -> list[Finding]:
        bot = await self._bots.now()
        return await checkup.examine(bot, self._options, in_use=in_use, home=home)

    async def meet(self) -> AsyncGenerator[Newcomer, None]:
        bot = await self._bots.now()
        async for newcomer in checkup.meet(bot):
            yield newcomer

    async def close(self) -> None:
        await self._bots.close()

    async def _meet(self) -> None:
        """Learn who we are, and settle how messages come, however long that takes."""
        pauses = streams.GrowingPauses()
        while True:
            try:
                bot = await self._bots.now()
                me = await bot.get_me()
                self._me = inbound.Me(id=me.id, username=me.username or "")
                if not self._options.public_url:
                    await bot.delete_webhook(drop_pending_updates=False)
                self.trouble = None
                return
            except (TelegramError, errors.MissingSecret) as error:
                self._note(error)
                await pauses.wait(_wanted(error))

    async def _poll(self, desk: channels.Desk) -> None:
        """Ask for what is new, without end. Asking with an offset confirms what is below it. It is kept only
        while something comes: ids start anew after a week of quiet, and an old offset could hide them."""
        offset: int | None = None
        pauses = streams.GrowingPauses()
        while True:
            try:
                bot = await self._bots.now()
                updates = await bot.fetch_updates(offset, self._options.poll_seconds, inbound.KINDS)
            except (TelegramError, errors.MissingSecret) as error:
                self._note(error)
                await pauses.wait(_wanted(error))
                continue
            self.trouble = None
            taken = await self._take(desk, updates)
            before, offset = offset, taken.offset
            if taken.broke_off:
                await pauses.wait()
                continue
            pauses.forget()
            if taken.held and offset == before:
                await asyncio.sleep(streams.HELD_SECONDS)

    async def _take(self, desk: channels.Desk, updates: Sequence[object]) -> "Taken":
        """Store updates in their order.

        A chat that has too many waiting holds up itself alone. The platform hands out no more than a hundred
        from the first that was not taken: when there are so many, what such a chat has among the first of
        them is given up, so that others are heard. Who writes there was told.
        """
        taken = Taken()
        for place, raw in enumerate(updates):
            number = inbound.update_number(raw)
            if number is None:
                log.warning("update_unreadable", account=self.account, why="it has no number")
                continue
            try:
                await self._store(desk, raw, taken.chats)
            except errors.TooManyWaiting as error:
                if place < len(updates) - MOST_HELD:
                    taken.pass_by(number)
                    log.warning("update_given_up", account=self.account, update=number, why=error)
                else:
                    taken.hold(number)
                    log.warning("update_held", account=self.account, update=number, why=error)
            except errors.StoreError as error:
                taken.hold(number)
                taken.broke_off = True
                log.warning("update_not_stored", account=self.account, update=number, why=error)
                break
            else:
                taken.pass_by(number)
        return taken

    async def _store(self, desk: channels.Desk, raw: object, held: set[str] | None = None) -> None:
        """Hand an update to the desk; a StoreError or TooManyWaiting when it is to come again.

        What is refused for good, or cannot be read, is done with. ``held`` are chats that wait: what comes
        later from one of them stays behind what came before.
        """
        assert self._me is not None
        try:
            happened = inbound.read_update(raw, self.account, self._me)
        except errors.InvalidInput as error:
            log.warning("update_unreadable", account=self.account, why=error)
            return
        if held and happened.chat in held and any(map(streams.waits_its_turn, happened.happenings)):
            raise errors.TooManyWaiting(waiting=len(held))
        for happening in happened.happenings:
            try:
                await streams.hand_over(desk, happening)
            except errors.TooManyWaiting:
                if held is not None and happened.chat is not None:
                    held.add(happened.chat)
                raise
        if happened.query is not None and self._tasks is not None:
            self._tasks.create_task(self._acknowledge(happened.query))

    async def _acknowledge(self, query: str) -> None:
        """The press is stored: the button need not turn any longer."""
        try:
            bot = await self._bots.now()
            await bot.answer_callback_query(query)
        except (TelegramError, errors.MissingSecret) as error:
            log.info("press_not_acknowledged", account=self.account, why=error)

    async def _stay_called(self) -> None:
        """Have the platform call us, and look now and then whether it still does."""
        pauses = streams.GrowingPauses()
        while True:
            try:
                await self._be_called()
                self.trouble = None
                pauses.forget()
                await asyncio.sleep(LOOK_SECONDS)
            except (TelegramError, errors.MissingSecret) as error:
                self._note(error)
                await pauses.wait(_wanted(error))

    async def _be_called(self) -> None:
        options, bot = self._options, await self._bots.now()
        assert options.public_url is not None
        assert options.public_secret is not None
        secret = options.public_secret()
        if (options.public_url, secret) == self._called:
            info = await bot.get_webhook_info()
            if info.url == options.public_url:
                return
        await bot.set_webhook(options.public_url, secret_token=secret, allowed_updates=inbound.KINDS)
        self._called = (options.public_url, secret)

    async def handle(self, request: channels.Request) -> channels.Response:
        if self._desk is None or self._me is None or self._options.public_secret is None:
            return channels.Response(status=HTTPStatus.SERVICE_UNAVAILABLE, headers=LATER)
        try:
            secret = self._options.public_secret()
        except errors.MissingSecret:
            return channels.Response(status=HTTPStatus.SERVICE_UNAVAILABLE, headers=LATER)
        shown = request.headers.get(SECRET_HEADER, "")
        if not hmac.compare_digest(shown.encode(), secret.encode()):
            log.warning("webhook_refused", account=self.account, client=request.client)
            return channels.Response(status=HTTPStatus.UNAUTHORIZED)
        request.prove(f"{PLATFORM} {self.account}")
        try:
            await self._store(self._desk, read_json(object, request.body))
        except errors.InvalidInput as error:
            log.warning("update_unreadable", account=self.account, why=error)
        except (errors.TooManyWaiting, errors.StoreError) as error:
            log.warning("update_not_stored", account=self.account, why=error)
            return channels.Response(status=HTTPStatus.SERVICE_UNAVAILABLE, headers=LATER)
        return channels.Response(status=HTTPStatus.OK)

    def _note(self, error: TelegramError | errors.MissingSecret) -> None:
        """Keep why nothing comes in, for whoever asks."""
        trouble = f"Telegram cannot be reached: {error}"
        if isinstance(error, errors.MissingSecret):
            trouble = str(error)
        elif isinstance(error, calls.CallRefused):
            if error.token_refused:
                trouble = calls.TOKEN_REFUSED
            elif error.status == HTTPStatus.CONFLICT:
                trouble = CONFLICT
        if trouble != self.trouble:
            log.warning("channel_troubled", platform=PLATFORM, account=self.account, why=trouble)
        self.trouble = trouble


class Taken:
    """How far a batch of updates was stored."""

    def __init__(self) -> None:
        self.offset: int | None = None
        """What may be said to the platform: everything below is taken."""
        self.held = False
        """Whether something is to come again."""
        self.broke_off = False
        """Whether nothing could be stored any more."""
        self.chats: set[str] = set()
        """Whose updates wait."""

    def pass_by(self, number: int) -> None:
        if not self.held:
            self.offset = number + 1

    def hold(self, number: int) -> None:
        if not self.held:
            self.offset = number
        self.held = True


def _wanted(error: Exception) -> float | None:
    """How long the platform, or another program, is to be left alone."""
    if not isinstance(error, calls.CallRefused):
        return None
    return error.wait or (CONFLICT_SECONDS if error.status == HTTPStatus.CONFLICT else None)
