"""The stand-in itself: tokens, updates, webhooks and troubles."""

import asyncio
import contextlib
import json
import random
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx
import msgspec

from frontdesk.testing import faults
from frontdesk.testing.telegram.chats import ASKED_BY_NAME, ApiCall, ApiFault, Chat, Member, Post
from frontdesk.testing.telegram.markup import ApiRefusal, bad
from frontdesk.testing.telegram.methods import METHODS
from frontdesk.testing.wire import HttpReply, HttpRequest, HttpServer, Upload

FIRST_UPDATE = 700_000_001
MOST_UPDATES = 100
AGAIN_SECONDS = 0.02
"""How soon a webhook that said no is called again."""
TERMINATED = (
    "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running"
)
CALLED_INSTEAD = (
    "Conflict: can't use getUpdates method while webhook is active;"
    " use deleteWebhook to delete the webhook first"
)
NOT_FOUND = ApiRefusal(404, "Not Found")


class BotApi:
    """A strict Bot API server on loopback, and the people who write to the bot."""

    def __init__(self, token: str = "110201543:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw") -> None:
        self.token = token
        self.me = Member(id=int(token.partition(":")[0]), first_name="Desk", username="desk_bot", is_bot=True)
        self.chats: dict[int, Chat] = {}
        self.posts: list[Post] = []
        self.calls: list[ApiCall] = []
        self.faults: list[ApiFault] = []
        self.weather: Callable[[ApiCall], ApiFault | None] = lambda _: None
        """What goes wrong with a call, beside the faults."""
        self.pending: list[dict[str, Any]] = []
        self.confirmed: list[int] = []
        """The ids of the updates that we were told to have been taken, in that order."""
        self.handed: Counter[int] = Counter()
        """How often each update was given out."""
        self.on_confirm: Callable[[dict[str, Any]], None] = lambda _: None
        self.impatient: list[ApiCall] = []
        """The calls that came while the platform had said to wait."""
        self.can_read_all = False
        """Whether privacy mode is off."""
        self.queries: dict[str, dict[str, str] | None] = {}
        """Presses, and what was answered to each."""
        self.actions: list[tuple[int, int | None, str]] = []
        self.signs: dict[tuple[int, int], tuple[str, ...]] = {}
        """The reactions of the bot, by chat and message."""
        self.kept_files: dict[str, Upload] = {}
        self.allowed: frozenset[str] | None = None
        self.webhook_url = ""
        self.webhook_secret: str | None = None
        self.webhook_error: str | None = None
        self.commands: list[dict[str, str]] = []
        self._update_id = FIRST_UPDATE
        self._message_ids: dict[int, int] = {}
        self._seen: dict[tuple[int, int], dict[str, Any]] = {}
        self._new = asyncio.Condition()
        self._poller: asyncio.Future[bool] | None = None
        """Done when whoever waits is answered; true when another one came."""
        self._pushing: asyncio.Task[None] | None = None
        self.wire = HttpServer(self._answer)

    @classmethod
    @asynccontextmanager
    async def open(cls, token: str | None = None) -> AsyncIterator["BotApi"]:
        api = cls(token) if token else cls()
        await api.wire.listen()
        try:
            yield api
        finally:
            await api.stop_pushing()
            await api.wire.close()

    @property
    def url(self) -> str:
        """The address in place of https://api.telegram.org."""
        return f"http://127.0.0.1:{self.wire.port}"

    @property
    def pending_ids(self) -> list[int]:
        return [each["update_id"] for each in self.pending]

    @property
    def polled(self) -> bool:
        """Whether somebody waits for updates now."""
        return self._poller is not None and not self._poller.done()

    async def until(self, holds: Callable[[], object], seconds: float = 60) -> None:
        """Wait until something holds that a call or an update brings about."""
        async with asyncio.timeout(seconds), self._new:
            await self._new.wait_for(holds)

    # What people do.

    def private(self, person: Member) -> Chat:
        return self.chats.setdefault(person.id, Chat(id=person.id))

    def group(self, number: int, title: str = "Team", *, is_forum: bool = False) -> Chat:
        chat = Chat(id=-1_000_000_000_000 - number, type="supergroup", title=title, is_forum=is_forum)
        return self.chats.setdefault(chat.id, chat)

    def say(
        self,
        person: Member | None,
        text: str | None = None,
        chat: Chat | None = None,
        update_id: int | None = None,
        **more: Any,
    ) -> dict[str, Any]:
        """Somebody writes; ``more`` are fields of the message. Gives the message."""
        if chat is None:
            assert person is not None
            chat = self.private(person)
        written: dict[str, Any] = {
            "message_id": self.next_message_id(chat.id),
            "date": int(time.time()),
            "chat": chat.told(),
        }
        if person is not None:
            written["from"] = person.told()
        if text is not None:
            written["text"] = text
        message = written | more
        self._seen[chat.id, message["message_id"]] = message
        self.put({"message": message}, update_id)
        return message

    def edit(self, message: dict[str, Any], text: str, update_id: int | None = None) -> None:
        changed = message | {"text": text, "edit_date": int(time.time())}
        self.put({"edited_message": changed}, update_id)

    def press(self, post: Post, person: Member, data: str | None = None, update_id: int | None = None) -> str:
        """Somebody presses a button under a message of ours; the first one, unless its data is given."""
        query = f"{random.getrandbits(63)}"
        self.queries[query] = None
        told = {
            "id": query,
            "from": person.told(),
            "chat_instance": "1",
            "message": self.told(post),
            "data": post.buttons[0]["callback_data"] if data is None else data,
        }
        self.put({"callback_query": told}, update_id)
        return query

    def react(
        self,
        chat: Chat,
        message_id: int,
        person: Member,
        *emoji: str,
        before: tuple[str, ...] = (),
        update_id: int | None = None,
    ) -> None:
        told = {
            "chat": chat.told(),
            "message_id": message_id,
            "user": person.told(),
            "date": int(time.time()),
            "old_reaction": [{"type": "emoji", "emoji": each} for each in before],
            "new_reaction": [{"type": "emoji", "emoji": each} for each in emoji],
        }
        self.put({"message_reaction": told}, update_id)

    def keep_file(self, name: str, data: bytes, kind: str = "application/octet-stream") -> dict[str, Any]:
        """A file that somebody has uploaded, as messages name it."""
        file_id = f"file-{len(self.kept_files)}-{random.getrandbits(40):x}"
        self.kept_files[file_id] = Upload(name, kind, data)
        return {
            "file_id": file_id,
            "file_unique_id": file_id[-8:],
            "file_name": name,
            "mime_type": kind,
            "file_size": len(data),
        }

    def put(self, update: dict[str, Any], update_id: int | None = None) -> int | None:
        """Queue an update of any form; None where its kind was not asked for."""
        kinds = set(update) - {"update_id"}
        if self.allowed is not None and self.allowed and not kinds & self.allowed:
            return None
        if not self.allowed and kinds & ASKED_BY_NAME:
            return None
        number = self._update_id if update_id is None else update_id
        self._update_id = number + 1
        self.pending.append({"update_id": number, **update})
        self.wake()
        return number

    def restart_ids(self, at: int) -> None:
        """After a week of quiet, ids go on at some other number."""
        self._update_id = at

    def told(self, post: Post) -> dict[str, Any]:
        """A message of ours, as the Bot API tells of it."""
        told: dict[str, Any] = {
            "message_id": post.message_id,
            "date": int(time.time()),
            "chat": self.chats[post.chat_id].told(),
            "from": self.me.told(),
            "text": post.text,
            "entities": post.entities,
        }
        if post.thread_id is not None:
            told |= {"message_thread_id": post.thread_id, "is_topic_message": True}
        return told

    # What the server keeps.

    def next_message_id(self, chat_id: int) -> int:
        self._message_ids[chat_id] = number = self._message_ids.get(chat_id, 0) + 1
        return number

    def knows(self, chat_id: int, message_id: int) -> bool:
        ours = any((each.chat_id, each.message_id) == (chat_id, message_id) for each in self.posts)
        return ours or (chat_id, message_id) in self._seen

    def wake(self) -> None:
        async def ring() -> None:
            async with self._new:
                self._new.notify_all()

        with contextlib.suppress(RuntimeError):
            task = asyncio.get_running_loop().create_task(ring())
            self._ringing = task

    def confirm(self, below: int) -> None:
        """Forget the updates below that id: whoever asks says that they are taken."""
        for update in [each for each in self.pending if each["update_id"] < below]:
            self.pending.remove(update)
            self.confirmed.append(update["update_id"])
            self.on_confirm(update)
        self.wake()

    async def updates(self, fields: dict[str, str]) -> list[dict[str, Any]]:
        """Answer getUpdates, which waits for something new."""
        if self.webhook_url:
            raise ApiRefusal(409, CALLED_INSTEAD)
        if self._poller is not None and self.polled:
            self._poller.set_result(True)
        offset, limit = int(fields.get("offset") or 0), int(fields.get("limit") or MOST_UPDATES)
        if not 1 <= limit <= MOST_UPDATES:
            raise bad("limit must be between 1 and 100")
        if fields.get("allowed_updates"):
            self.allowed = frozenset(json.loads(fields["allowed_updates"]))
        if offset < 0:
            self.confirm(self.pending[offset]["update_id"] if -offset <= len(self.pending) else 0)
        else:
            self.confirm(offset)
        if not self._from(offset):
            await self._something(offset, float(fields.get("timeout") or 0))
        given = self._from(offset)[:limit]
        self.handed.update(each["update_id"] for each in given)
        return given

    def _from(self, offset: int) -> list[dict[str, Any]]:
        return [each for each in self.pending if each["update_id"] >= offset]

    def release_poll(self) -> None:
        """Whoever waits for updates is answered now, with what there is."""
        if self._poller is not None and self.polled:
            self._poller.set_result(False)

    async def _something(self, offset: int, seconds: float) -> None:
        self._poller = mine = asyncio.get_running_loop().create_future()
        self.wake()
        async with self._new:
            waiting = asyncio.ensure_future(self._new.wait_for(lambda: self._from(offset) or mine.done()))
            try:
                await asyncio.wait({waiting, mine}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            finally:
                waiting.cancel()
                await asyncio.gather(waiting, return_exceptions=True)
        if mine.done() and mine.result():
            raise ApiRefusal(409, TERMINATED)

    # Webhooks.

    def start_pushing(self) -> None:
        self._pushing = asyncio.create_task(self._push())

    async def stop_pushing(self) -> None:
        task, self._pushing = self._pushing, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _push(self) -> None:
        headers = {"content-type": "application/json"}
        if self.webhook_secret:
            headers["x-telegram-bot-api-secret-token"] = self.webhook_secret
        async with httpx.AsyncClient(trust_env=False, timeout=10) as client:
            while True:
                if not self.pending:
                    async with self._new:
                        await self._new.wait_for(lambda: bool(self.pending))
                update = self.pending[0]
                try:
                    self.handed[update["update_id"]] += 1
                    answer = await client.post(self.webhook_url, content=json.dumps(update), headers=headers)
                    self.webhook_error = None if answer.is_success else f"status {answer.status_code}"
                except httpx.HTTPError as error:
                    self.webhook_error = repr(error)
                if self.webhook_error is None:
                    self.confirm(update["update_id"] + 1)
                else:
                    self.wake()
                    await asyncio.sleep(AGAIN_SECONDS)

    # Calls.

    async def _answer(self, asked: HttpRequest) -> HttpReply:
        if asked.path.startswith("/file/bot"):
            return self._download(asked.path.removeprefix("/file/bot"))
        token, _, method = asked.path.removeprefix("/bot").partition("/")
        call = ApiCall(method=method, fields=asked.fields, uploads=asked.uploads, token=token)
        self.calls.append(call)
        self.wake()
        fault = self._fault(call)
        if fault is None:
            return await self._carry_out(call)
        if fault.taken:
            await self._carry_out(call)
        if fault.hangs:
            await asyncio.Event().wait()
        if fault.cut:
            return HttpReply(cut=True)
        if fault.body is not None:
            return HttpReply(body=fault.body)
        parameters = {"retry_after": fault.retry_after} if fault.retry_after else None
        if fault.retry_after and (chat := self.chats.get(_number(call.fields.get("chat_id")))):
            chat.waits_until = time.monotonic() + fault.retry_after
        return _refusal(ApiRefusal(fault.status or 500, fault.description, parameters))

    def _fault(self, call: ApiCall) -> ApiFault | None:
        concerned = faults.take(self.faults, lambda fault: fault.method in (None, call.method))
        return concerned or self.weather(call)

    async def _carry_out(self, call: ApiCall) -> HttpReply:
        if call.token != self.token:
            return _refusal(ApiRefusal(401, "Unauthorized") if ":" in call.token else NOT_FOUND)
        method = METHODS.get(call.method.lower())
        if method is None:
            return _refusal(NOT_FOUND)
        try:
            result = await method(self, call)
            self.wake()
        except ApiRefusal as refused:
            return _refusal(refused)
        return HttpReply(body=msgspec.json.encode({"ok": True, "result": result}))

    def _download(self, path: str) -> HttpReply:
        token, _, name = path.partition("/")
        file = self.kept_files.get(name.removeprefix("documents/"))
        if token != self.token or file is None:
            return HttpReply(status=404, body=b'{"ok":false,"error_code":404,"description":"Not Found"}')
        return HttpReply(body=file.data, kind="application/octet-stream")


def _refusal(refused: ApiRefusal) -> HttpReply:
    told: dict[str, Any] = {"ok": False, "error_code": refused.code, "description": refused.description}
    if refused.parameters:
        told["parameters"] = refused.parameters
    return HttpReply(status=refused.code, body=msgspec.json.encode(told))


def _number(text: str | None) -> int:
    try:
        return int(text or 0)
    except ValueError:
        return 0
